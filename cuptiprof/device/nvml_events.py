"""XIDs, the driver's reports of critical errors, as NVML gives them to a thread that waits."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from cuptiprof.device.nvml_counters import NvmlGpu

_TIMEOUT = 10  # nvmlReturn_t: NVML_ERROR_TIMEOUT


class NvmlEvents:
    """The events of some GPUs. One that gives none (a user without the right, a part of a GPU) says so in its ``refused``."""

    def __init__(self, nvml: Any, gpus: Sequence[NvmlGpu]) -> None:
        self._nvml = nvml
        self._set: Any = None
        left = list(gpus)
        while left and self._set is None:
            left = self._register(left)

    @property
    def are_there(self) -> bool:
        """Whether any GPU gives events."""
        return self._set is not None

    def wait(self, milliseconds: int) -> tuple[int, int] | None:
        """Index of a GPU (as in ``NvmlGpu``) and the number of its XID; None: there was none in that time, which may be cut short.

        Raises: nvml.NVMLError, and what a broken binding raises.
        """
        try:
            event = self._nvml.nvmlEventSetWait_v2(self._set, milliseconds)
        except self._nvml.NVMLError as e:
            if getattr(e, "value", 0) == _TIMEOUT:
                return None
            raise
        return int(self._nvml.nvmlDeviceGetIndex(event.device)), int(event.eventData)

    def close(self) -> None:
        """NVML's set is given back."""
        events, self._set = self._set, None
        if events is not None:
            with contextlib.suppress(Exception):
                self._nvml.nvmlEventSetFree(events)

    def _register(self, gpus: list[NvmlGpu]) -> list[NvmlGpu]:
        """Makes the set; of a GPU that fails nothing is known of the set any more (nvml.h), so that it is made again without that one.
        Gives those with which to try again."""
        try:
            self._set = self._nvml.nvmlEventSetCreate()
        except Exception as e:
            for gpu in gpus:
                gpu.refused["xid"] = str(e)
            return []
        for gpu in gpus:
            try:
                self._nvml.nvmlDeviceRegisterEvents(gpu.handle, self._nvml.nvmlEventTypeXidCriticalError, self._set)
            except Exception as e:
                gpu.refused["xid"] = str(e)
                self.close()
                return [other for other in gpus if other is not gpu]
        return []
