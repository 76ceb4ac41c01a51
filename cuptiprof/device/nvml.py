"""NVIDIA's management library by its Python binding, nvidia-ml-py: the one place that imports it."""

from __future__ import annotations

from typing import Any

from cuptiprof.errors import DeviceError

_INSTALL = "pip install 'cuptiprof[bench]'"


def load_nvml() -> Any:
    """The module ``pynvml``, initialised.

    Raises:
        DeviceError: it is not installed, or NVML does not answer (no driver, no permission).
    """
    try:
        import pynvml
    except ImportError:
        raise DeviceError(f"nvidia-ml-py is not installed ({_INSTALL})", hint=_INSTALL) from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as e:
        raise DeviceError(f"NVML: {e}", hint="`nvidia-smi` says more") from None
    return pynvml
