"""Puts PyTorch's operators on the simulated device, as soon as the program imports torch (never before)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from cuptiprof.sim.device import SimDevice

_active: Any = None
_finder: _AfterTorch | None = None


class _AfterTorch:
    """A meta path finder that lets the real ones import torch and then calls back."""

    def __init__(self, sim: SimDevice, chip: str) -> None:
        self._sim, self._chip = sim, chip

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        import importlib.util

        spec = importlib.util.find_spec("torch")
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_then_install(module: Any) -> None:
            execute(module)
            _enter(self._sim, self._chip)

        spec.loader.exec_module = exec_then_install  # type: ignore[method-assign]
        return spec


def _enter(sim: SimDevice, chip: str) -> None:
    global _active
    from cuptiprof.sim.torch_device import TorchSimMode

    _active = TorchSimMode(sim, chip)
    _active.__enter__()


def install(sim: SimDevice, chip: str) -> None:
    """From now on, operators on the calling thread launch simulated kernels."""
    global _finder
    if "torch" in sys.modules:
        _enter(sim, chip)
        return
    _finder = _AfterTorch(sim, chip)
    sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Back to plain PyTorch."""
    global _active, _finder
    if _finder is not None and _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    _finder = None
    if _active is not None:
        _active.__exit__(None, None, None)
        _active = None
