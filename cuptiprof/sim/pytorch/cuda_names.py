"""Scripts that say "cuda" without asking whether there is one: on the simulated device that is the CPU, whose tensors count as a GPU's.

Only where this PyTorch has no CUDA of its own, and only the names below: factories and moves of tensors, waiting, events, the profiler
window. What else needs CUDA fails as it would without us, with a hint.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cuptiprof.sim.sim_device import Op

if TYPE_CHECKING:
    from cuptiprof.sim.sim_device import SimDevice

_FACTORIES = (
    "arange", "as_tensor", "asarray", "empty", "empty_like", "empty_strided", "eye", "full", "full_like", "linspace", "logspace",
    "ones", "ones_like", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "scalar_tensor", "tensor",
    "tril_indices", "triu_indices", "zeros", "zeros_like",
)  # fmt: skip
_METHODS = ("to", "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros")
_CUDA = re.compile(r"cuda(:\d+)?")
HINT = (
    "on cuptiprof's simulated device every CPU tensor counts as a GPU's, and \"cuda\" is understood where tensors are made and "
    "moved; for the rest let the script ask: torch.cuda.is_available()"
)


class CudaNames:
    """From `put` to `take_off`, "cuda" means the CPU."""

    def __init__(self, torch: Any, sim: SimDevice, name: str) -> None:
        """`name`: of the simulated GPU."""
        self._torch, self._sim, self._name = torch, sim, name
        self._events = 0
        self._undo: list[tuple[Any, str, Any]] = []

    def put(self) -> None:
        """Nothing happens where there is a real one."""
        torch = self._torch
        if torch.cuda.is_available():
            return
        for owner, names in ((torch, _FACTORIES), (torch.Tensor, _METHODS)):
            for name in names:
                if (original := getattr(owner, name, None)) is not None:
                    self._replace(owner, name, self._on_cpu(original, moves=name == "to"))
        for name in ("cuda", "pin_memory"):
            self._replace(torch.Tensor, name, lambda tensor, *args, **kwargs: tensor)
        window = _Cudart(self._sim)
        for owner, name, value in (
            (torch.cuda, "synchronize", lambda device=None: self._sim.synchronize()),
            (torch.cuda, "set_device", lambda device: None),
            (torch.cuda, "current_device", lambda: 0),
            (torch.cuda, "get_device_name", lambda device=None: f"{self._name} (simulated)"),
            (
                torch.cuda,
                "Event",
                type("Event", (_SimulatedEvent,), {"_names": self}),
            ),  # a class: torch asks isinstance
            (torch.cuda, "cudart", lambda: window),
            (torch.cuda.profiler, "start", window.cudaProfilerStart),
            (torch.cuda.profiler, "stop", window.cudaProfilerStop),
            (torch.cuda, "_lazy_init", self._no_cuda(torch.cuda._lazy_init)),
        ):
            self._replace(owner, name, value)

    def take_off(self) -> None:
        """Every name is what it was."""
        while self._undo:
            owner, name, original = self._undo[-1]
            setattr(owner, name, original)
            self._undo.pop()

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        self._undo.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def _is_cuda(self, value: object) -> bool:
        if isinstance(value, str):
            return _CUDA.fullmatch(value) is not None
        return isinstance(value, self._torch.device) and value.type == "cuda"

    def _on_cpu(self, original: Callable[..., Any], *, moves: bool) -> Callable[..., Any]:
        @functools.wraps(original)
        def on_cpu(*args: Any, **kwargs: Any) -> Any:
            device = kwargs.get("device")
            if device is not None and (self._is_cuda(device) or type(device) is int):
                kwargs["device"] = "cpu"
            elif moves and len(args) > 1 and (self._is_cuda(args[1]) or type(args[1]) is int):
                args = (args[0], "cpu", *args[2:])
            return original(*args, **kwargs)

        return on_cpu

    def _no_cuda(self, original: Callable[[], None]) -> Callable[[], None]:
        def lazy_init() -> None:
            try:
                original()
            except (AssertionError, RuntimeError) as e:
                raise type(e)(f"{e}\n  hint: {HINT}") from None

        return lazy_init

    def _event_number(self) -> int:
        self._events += 1
        return (1 << 31) + self._events  # apart from those of others


class _SimulatedEvent:
    """torch.cuda.Event, with the simulated GPU's times."""

    _names: CudaNames

    def __init__(self, enable_timing: bool = False, **kwargs: Any) -> None:
        self._sim = self._names._sim
        self._number = self._names._event_number()

    def record(self, stream: Any = None) -> None:
        self._sim.call(Op.EVENT_RECORD, event=self._number)

    def synchronize(self) -> None:
        self._sim.call(Op.SYNC_EVENT, event=self._number)

    def wait(self, stream: Any = None) -> None:
        """There is one stream."""

    def query(self) -> bool:
        return self._sim.event_time(self._number) <= self._sim.now()

    def elapsed_time(self, end: _SimulatedEvent) -> float:
        """ms, as torch's."""
        return (self._sim.event_time(end._number) - self._sim.event_time(self._number)) / 1e6


class _Cudart:
    """torch.cuda.cudart()."""

    def __init__(self, sim: SimDevice) -> None:
        self._sim = sim

    def __getattr__(self, name: str) -> Any:
        if name.startswith("cuda"):
            raise RuntimeError(f"there is no CUDA for {name}\n  hint: {HINT}")
        raise AttributeError(name)

    def cudaProfilerStart(self) -> int:
        self._sim.call(Op.PROFILER_START)
        return 0

    def cudaProfilerStop(self) -> int:
        self._sim.call(Op.PROFILER_STOP)
        return 0
