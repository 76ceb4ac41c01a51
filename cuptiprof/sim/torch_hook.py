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

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from cuptiprof.sim.device import SimDevice

_installed: _Installed | None = None


class _AfterTorch:
    """A meta path finder that lets the real ones import torch and then calls back."""

    def __init__(self, imported: Callable[[], None]) -> None:
        self._imported = imported

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != "torch":
            return None
        self.remove()
        import importlib.util

        spec = importlib.util.find_spec("torch")
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_then_call(module: Any) -> None:
            execute(module)
            self._imported()

        spec.loader.exec_module = exec_then_call  # type: ignore[method-assign]
        return spec

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)


class _Installed:
    """Everything that one session has put into the process, to be taken out again."""

    def __init__(self, sim: SimDevice, chip: str) -> None:
        self._sim, self._chip = sim, chip
        self._simulation: Any = None
        self._mode: Any = None
        self._hooks: Any = None
        self._finder = _AfterTorch(self._torch_is_here)
        self._start = threading.Thread.start
        self._patched_start: Any = None

    def install(self) -> None:
        if sys.modules.get("torch") is not None:
            self._torch_is_here()
        else:
            sys.meta_path.insert(0, self._finder)

    def _torch_is_here(self) -> None:
        if _installed is not self:
            return  # the session ended while torch was being imported
        from cuptiprof.sim import torch_device

        torch_device.leave_stale()
        self._simulation = torch_device.TorchSimulation(self._sim, self._chip)
        torch_device.watch_forks(self._simulation)
        self._hooks = torch_device.optimizer_hooks()
        self._hooks.__enter__()
        self._mode = torch_device.TorchSimMode(self._simulation)
        self._mode.enter(first=True)
        self._follow_threads()

    def _follow_threads(self) -> None:
        """New threads enter the mode before their `run` and leave it after."""
        simulation, original = self._simulation, self._start

        def start(thread: threading.Thread) -> None:
            run = thread.run

            def run_simulated() -> None:
                from cuptiprof.sim.torch_device import TorchSimMode

                vars(thread).pop("run", None)
                if not simulation.active:
                    return run()
                mode = TorchSimMode(simulation)
                mode.enter(first=False)
                try:
                    run()
                finally:
                    mode.leave(first=False)

            if simulation.active:
                thread.run = run_simulated  # type: ignore[method-assign]
            original(thread)

        self._patched_start = start
        threading.Thread.start = start  # type: ignore[method-assign,assignment]

    def uninstall(self) -> dict[str, int]:
        self._finder.remove()
        if self._simulation is None:
            return {}
        self._simulation.active = False
        if threading.Thread.start is self._patched_start:
            threading.Thread.start = self._start  # type: ignore[method-assign]
        # None: Ctrl-C came while it was installed.
        if self._mode is not None:
            self._mode.leave(first=True)
        if self._hooks is not None:
            self._hooks.__exit__(None, None, None)
        return dict(self._simulation.unmodelled)


def install(sim: SimDevice, chip: str) -> None:
    """From now on, operators on this thread and on threads to come launch simulated kernels."""
    global _installed
    _installed = _Installed(sim, chip)
    _installed.install()


def uninstall() -> dict[str, int]:
    """Back to plain PyTorch. Returns how often each operator ran that the model took as element-wise for want of better.

    May be called on another thread than ``install``: the modes are then switched off at once, and removed by the next
    session of the thread.
    """
    global _installed
    installed, _installed = _installed, None
    return installed.uninstall() if installed is not None else {}
