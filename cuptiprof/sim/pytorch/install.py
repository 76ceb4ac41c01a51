"""Puts PyTorch's operators on the simulated device, as soon as the program imports torch (never before).

Covered threads: the one that starts the session (or that imports torch in it), and every ``threading.Thread`` started
while the session runs, thread pools included. Threads that ran before are not: torch keeps its modes by thread, and no
thread can set another's.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cuptiprof.data.chips import BOARDS
from cuptiprof.regions.when_imported import WhenImported
from cuptiprof.sim.pytorch.compiled_calls import count_calls
from cuptiprof.sim.pytorch.cuda_names import CudaNames
from cuptiprof.sim.pytorch.device_memory import put_memory_functions

if TYPE_CHECKING:
    from cuptiprof.sim.sim_device import SimDevice


class TorchOnDevice:
    """From `open` to `close`, operators on the opening thread and on threads to come launch simulated kernels."""

    def __init__(self, sim: SimDevice, chip: str) -> None:
        self._sim, self._chip = sim, chip
        self._simulation: Any = None
        self._closed = False
        self._undo: list[Callable[[], None]] = []

    def open(self) -> None:
        """Now if torch has been imported, else as soon as it is."""
        if sys.modules.get("torch") is not None:
            self._torch_is_here()
        else:
            waiting = WhenImported("torch", lambda torch: self._torch_is_here())
            self._undo.append(waiting.remove)
            waiting.wait()

    def _torch_is_here(self) -> None:
        if self._closed:
            return  # the session ended while torch was being imported
        from cuptiprof.sim.pytorch import dispatch_mode

        dispatch_mode.leave_stale()
        dispatch_mode.import_early()
        self._simulation = dispatch_mode.TorchSimulation(self._sim, self._chip)
        names = CudaNames(sys.modules["torch"], self._sim, BOARDS[self._chip].product)
        self._undo.append(names.take_off)
        names.put()
        if not sys.modules["torch"].cuda.is_available():
            self._undo += put_memory_functions(sys.modules["torch"], self._simulation.memory.allocator)
        self._undo.append(count_calls(sys.modules.get("torch._dynamo.eval_frame"), self._simulation.compiled_call))
        for hook in dispatch_mode.optimizer_hooks():
            self._undo.append(hook.remove)
        mode = dispatch_mode.TorchSimMode(self._simulation)
        self._undo.append(mode.leave)
        mode.enter(first=True)
        self._undo.append(_simulate_new_threads(self._simulation, dispatch_mode.TorchSimMode))

    @property
    def compiled_calls(self) -> int:
        """Calls of functions of torch.compile so far."""
        return self._simulation.compiled_calls if self._simulation is not None else 0

    def close(self) -> dict[str, int]:
        """Back to plain PyTorch. Returns how often each operator ran that the model took as element-wise for want of better.

        May be called on another thread: the modes are then switched off at once, and removed by the next session of the thread.
        """
        self._closed = True
        if self._simulation is not None:
            self._simulation.stop()
        for undo in reversed(self._undo):  # each may be called twice: Ctrl-C in between loses none
            undo()
        self._undo.clear()
        return dict(self._simulation.unmodelled) if self._simulation is not None else {}


def _simulate_new_threads(simulation: Any, new_mode: Callable[[Any], Any]) -> Callable[[], None]:
    """New threads enter a mode before their `run` and leave it after. Returns how to undo that."""
    original = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        run = thread.run

        def run_simulated() -> None:
            vars(thread).pop("run", None)
            if not simulation.active:
                return run()
            mode = new_mode(simulation)
            mode.enter(first=False)
            try:
                run()
            finally:
                mode.leave()

        if simulation.active:
            thread.run = run_simulated  # type: ignore[method-assign]
        original(thread)

    def put_back() -> None:
        if threading.Thread.start is start:
            threading.Thread.start = original  # type: ignore[method-assign]

    threading.Thread.start = start  # type: ignore[method-assign,assignment]
    return put_back
