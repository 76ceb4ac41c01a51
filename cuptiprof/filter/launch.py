"""A launch as a filter sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cuptiprof.filter.checks import U32_MAX, Dims, dims, integer


@dataclass(frozen=True)
class Launch:
    """One kernel launch, for trying a filter without a device. Every field is optional.

    ``mangled``, ``demangled`` and the function name are derived from what is given. ``push_pop`` and
    ``start_end`` map an NVTX domain ("" is the default one) to the names of its open ranges, push/pop ones
    bottom first. ``stack`` has (file, function, line) of the Python frames, the innermost first. ``region`` is the path of the
    innermost open region ("fwd/attn"), ``operator`` that of the innermost operator of PyTorch ("aten::linear/aten::addmm"), ``module``
    that of its module ("Net.head"). ``step`` is the training step; None: none was marked. ``shared_memory`` is in bytes,
    static + dynamic; sizes are (x, y, z).
    """

    name: str | None = None
    grid: Dims = (1, 1, 1)
    block: Dims = (1, 1, 1)
    stream: int = 0
    context: int = 0
    device: int = 0
    shared_memory: int = 0
    context_name: str = ""
    stream_name: str = ""
    demangled: str | None = None
    mangled: str | None = None
    push_pop: Mapping[str, Sequence[str]] = field(default_factory=dict)
    start_end: Mapping[str, Sequence[str]] = field(default_factory=dict)
    region: str = ""
    thread: int = 0
    step: int | None = None
    stack: Sequence[tuple[str, str, int]] = ()
    operator: str = ""
    module: str = ""

    def __post_init__(self) -> None:
        for what in ("grid", "block"):
            object.__setattr__(self, what, dims(what, getattr(self, what)))
        for what in ("stream", "context", "device", "thread"):
            object.__setattr__(self, what, integer(what, getattr(self, what), U32_MAX))
        if self.step is not None:
            object.__setattr__(self, "step", integer("step", self.step, U32_MAX))
        object.__setattr__(self, "shared_memory", integer("shared_memory", self.shared_memory))
        for what in ("push_pop", "start_end"):
            object.__setattr__(self, what, {d: list(names) for d, names in getattr(self, what).items()})
