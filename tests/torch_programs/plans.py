"""Plans of random programs: what a model is made of, how it is trained, and by how many threads. Data, drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import strategies as st

LEAVES = ("Linear", "Tanh", "Dropout", "LayerNorm", "GELU", "ReLU in place", "own weight")
CONTAINERS = ("Sequential", "ModuleList", "ModuleDict")
AROUND = (
    "residual", "twice", "no_grad", "inference", "detach", "in place", "view in place", "checkpoint", "checkpoint reentrant",
    "checkpoint of a function", "checkpoint of a function reentrant", "own function", "tensor hook", "region", "record_function",
    "gradient", "foreach", "fails", "through the host", "saved on the host", "thread", "halves", "scripted function",
    "checkpoint up to a module", "made in forward", "hooks of forward", "hook of backward",
)  # fmt: skip
"""What a module does with the one in it."""
MODES = ("backward", "retained", "grad", "penalty", "some inputs", "parts of the loss", "another thread")
"""How gradients are asked for."""


@dataclass(frozen=True)
class Part:
    """A module: of LEAVES without others, of AROUND with one in it, of CONTAINERS with several; "same": a leaf that is there already."""

    kind: str
    inner: tuple[Part, ...] = ()
    which: int = 0

    def all(self) -> Iterator[Part]:
        """It and what is in it."""
        yield self
        for part in self.inner:
            yield from part.all()


@dataclass(frozen=True)
class Training:
    """A model and a loop around it."""

    model: Part
    mode: str = "backward"
    optimizer: str = "SGD"
    foreach: bool = False
    steps: int = 1
    micro_batches: int = 1
    regions: frozenset[str] = frozenset()
    marks_steps: bool = True
    after_accumulation: bool = False
    clips: bool = False
    evaluates: bool = False


@dataclass(frozen=True)
class Plan:
    """A program: trainings, each on a thread of its own if there are several, and the session that follows them."""

    trainings: tuple[Training, ...]
    level: str = "full"
    beside: bool = False
    lines: bool = False


_leaf = st.one_of(
    st.builds(Part, st.sampled_from(LEAVES)), st.builds(Part, st.just("same"), st.just(()), st.integers(0, 7))
)


def _around(parts: st.SearchStrategy[Part]) -> st.SearchStrategy[Part]:
    several = st.lists(parts, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Part, st.sampled_from(CONTAINERS), several),
        st.builds(Part, st.sampled_from(AROUND), st.tuples(parts)),
    )


parts = st.recursive(_leaf, _around, max_leaves=6)
trainings = st.builds(
    Training,
    model=st.builds(Part, st.sampled_from(CONTAINERS), st.lists(parts, min_size=1, max_size=3).map(tuple)),
    mode=st.sampled_from(MODES),
    optimizer=st.sampled_from(["SGD", "AdamW"]),
    foreach=st.booleans(),
    steps=st.integers(1, 2),
    micro_batches=st.integers(1, 2),
    regions=st.frozensets(st.sampled_from(["step", "forward", "backward", "optimizer"])),
    marks_steps=st.booleans(),
    after_accumulation=st.booleans(),
    clips=st.booleans(),
    evaluates=st.booleans(),
)
plans = st.builds(
    Plan,
    trainings=st.one_of(st.tuples(trainings), st.tuples(trainings), st.tuples(trainings, trainings)),
    level=st.sampled_from(["full", "launch"]),
    beside=st.booleans(),
    lines=st.booleans(),
)
