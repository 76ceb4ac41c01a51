"""What a function under measurement is called with: its own arguments, or copies of them in turn; and whether it gives what it should."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import cuptiprof
from cuptiprof.bench import Case, Count
from cuptiprof.bench.inputs import rotating, split_keywords
from cuptiprof.bench.reference import difference
from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.errors import BenchError


class Array:
    """An array of the device: it has bytes and can be copied."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes

    def copy(self) -> Array:
        return Array(self.nbytes)


@pytest.fixture
def machine() -> SimulatedDevice:
    return SimulatedDevice(virtual_clock=True)


def test_a_function_is_measured_with_its_arguments(machine: SimulatedDevice) -> None:
    seen: set[Any] = set()

    def scaled(x: int, /, factor: int = 1, *, times: int = 1) -> None:
        seen.add((x, factor, times))
        machine.sim.launch("k", duration_ns=1_000 * x * factor, count=times)

    m = cuptiprof.bench(scaled, 3, device=machine, factor=2, times=2, stop=Count(10))
    assert seen == {(3, 2, 2)} and m.median == 12_000 and m.name == "scaled"
    both = cuptiprof.compare({"a": scaled, "b": scaled}, 4, device=machine, stop=Count(12))
    assert [m.median for m in both.measurements] == [4_000, 4_000]


def test_a_keyword_is_an_option_or_the_functions_and_never_both() -> None:
    def f(x: int, strategy: str = "a", width: int = 3) -> None: ...

    def any_keyword(**more: int) -> None: ...

    assert split_keywords("bench", f, (1,), {"width": 4, "l2": "cold"}) == ({"l2": "cold"}, {"width": 4})
    # Without arguments from outside its defaults are its own affair.
    assert split_keywords("bench", lambda dtype="fp8": None, (), {"dtype": "fp8"}) == ({"dtype": "fp8"}, {})
    assert split_keywords("bench", any_keyword, (), {"out": 1})[1] == {"out": 1}
    assert split_keywords("bench", functools.partial(f, width=1), (), {"x": 1})[1] == {"x": 1}
    assert split_keywords("bench", np.add, (1, 2), {"out": None})[1] == {"out": None}
    with pytest.raises(BenchError, match=r"strategy= is an option of bench\(\) and a parameter of f") as caught:
        split_keywords("bench", f, (1,), {"strategy": "event"})
    assert "lambda" in caught.value.hint
    for function in (f, any_keyword, np.add):
        with pytest.raises(TypeError, match=r"'max_second' \(did you mean max_seconds\?\)"):
            split_keywords("bench", function, (1,), {"max_second": 3})
    with pytest.raises(TypeError, match="'depth'"):
        split_keywords("bench", f, (1,), {"depth": 3})


def test_copies_take_turns_and_are_larger_than_the_cache_together() -> None:
    host, own = np.zeros(10), Array(30 << 20)
    seen: list[Any] = []
    call, count = rotating(lambda x, *, more: seen.append((x, more)), (own,), {"more": [own, host]}, 100 << 20)
    assert count == 3  # two others of 60 MB between two uses
    for _ in range(7):
        call()
    assert seen[0][0] is own and seen[0] == seen[3] == seen[6] and len({id(x) for x, _ in seen}) == 3
    assert all(more[1] is host for _, more in seen)
    for args, words in (((host, 3), "needs arrays"), ((Array(64),), "would need")):
        with pytest.raises(BenchError, match=words) as caught:
            rotating(lambda *a: None, args, {}, 100 << 20)
        assert "cold" in caught.value.hint


@pytest.mark.parametrize("strategy", ["kernel", "event", "graph"])
def test_rotating_inputs_are_measured_in_batches(machine: SimulatedDevice, strategy: str) -> None:
    """By graph a replay goes through all the copies: a part of them might stay in the L2."""
    seen: list[int] = []

    def f(x: Array) -> None:
        seen.append(id(x))
        machine.sim.launch("k", duration_ns=20_000)

    m = cuptiprof.bench(f, Array(60 << 20), device=machine, l2="rotate", strategy=strategy, stop=Count(20))
    copies = len(set(seen))
    assert copies == 6 and m.l2 == "rotate" and m.median == pytest.approx(20_000, rel=0.01)  # 256 MB between two uses
    if strategy == "graph":
        assert m.batch % copies == 0 and m.batch * 20_000 >= 1_000_000
    with pytest.raises(BenchError, match="says nothing"):
        cuptiprof.bench(f, Array(1 << 20), device=machine, l2="rotate", strategy="cpu")


def test_a_function_that_gives_something_else_is_not_measured() -> None:
    def right(x: Any) -> Any:
        return x * 2.0

    def wrong(x: Any) -> Any:
        return x * 2.0 + 1e-3

    x, options = np.ones(4, np.float32), {"device": "host", "max_seconds": 0.02, "warmup_seconds": 0.01}
    for reference in (right, x * 2):
        assert cuptiprof.bench(right, x, check=reference, **options).samples.size
        with pytest.raises(BenchError, match="'wrong' does not give what its reference gives"):
            cuptiprof.bench(wrong, x, check=reference, **options)
    with pytest.raises(BenchError, match="'new' does not give"):
        cuptiprof.compare({"old": right, "new": wrong}, x, check=True, **options)
    loose = Case(wrong, check=lambda x: x * 2.0 + 1e-3)
    assert cuptiprof.compare({"old": right, "new": loose}, x, check=True, **options)["new"].samples.size
    ready: list[int] = []

    def after_setup() -> int:
        return ready.pop()

    assert cuptiprof.bench(after_setup, setup=lambda: ready.append(7), check=7, **options).samples.size


def test_what_differs_is_said() -> None:
    torch = pytest.importorskip("torch")
    a = np.arange(6.0)
    same: list[tuple[Any, Any]] = [
        (a, a + 1e-9), (a.astype(np.float16), (a * 1.0004).astype(np.float16)), ([1, (2, 3.0)], [1, (2, 3.0 + 1e-9)]),
        ({"x": a}, {"x": a}), (torch.ones(3), torch.ones(3) + 1e-7), (None, None), ("a", "a"), (float("nan"), float("nan")),
    ]  # fmt: skip
    for one, other in same:
        assert difference(one, other) == "", (one, other)
    for one, other, words in (
        (a, a + 1e-3, "Mismatched elements"), (a, a[:3], "shape (6,)"), (a, a.astype(np.float32), "float64"), ([1], [1, 2], "1 values"),
        ({"x": 1}, {"y": 1}, "keys"), ([1, [2, 3]], [1, [2, 4]], "[1][1]"), (np.arange(3), np.array([0, 1, 9]), "1 of 3 elements"),
        (torch.ones(3), torch.zeros(3), "not close"), (None, 1, "None where 1"), (torch.ones(2), torch.ones(3), "shape"), (3, "3", "was expected"),
    ):  # fmt: skip
        assert words in difference(one, other), (one, other, difference(one, other))


def test_arrays_of_torch_are_copied_as_they_are() -> None:
    torch = pytest.importorskip("torch")
    x, w = torch.randn(1 << 16), torch.nn.Parameter(torch.randn(4))
    seen: list[Any] = []
    call, count = rotating(lambda *a: seen.append(a), (x, w, (x, 3)), {}, 1 << 20)
    for _ in range(count):
        call()
    assert count == 3 and all(torch.equal(a[0], x) and a[1].requires_grad and a[2][1] == 3 for a in seen)
    assert len({a[0].data_ptr() for a in seen}) == count
