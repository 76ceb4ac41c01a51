"""What the system says now, of the host and of the GPUs that the program sees, by the numbers that it has for them."""

from __future__ import annotations

from cuptiprof.data.system_counters import HOST
from cuptiprof.device.devices import Device
from cuptiprof.session.system_sampler import SystemSampler


class VisibleReadings:
    """Gives the latest readings: GPU (-1: the host), name of the counter, value in its unit. Those of a GPU begin when the program has
    used one: until then nobody knows which GPUs are its own, nor what it calls them (``CUDA_VISIBLE_DEVICES``)."""

    def __init__(self, sampler: SystemSampler, device: Device) -> None:
        self._sampler = sampler
        self._device = device
        self._numbers: dict[int, int] = {}  # by NVML's

    def __call__(self) -> list[tuple[int, str, float]]:
        if not self._numbers:
            self._numbers = self._known()
        return [
            (self._numbers.get(of, HOST), name, value)
            for of, name, value in self._sampler.latest()
            if of == HOST or of in self._numbers
        ]

    def _known(self) -> dict[int, int]:
        uuids = self._sampler.uuids()
        if self._device.simulated:
            return {index: index for index in uuids}
        seen = {str(gpu.get("uuid")): int(gpu["ordinal"]) for gpu in self._device.metadata().get("gpus", ())}
        return {index: seen[uuid] for index, uuid in uuids.items() if uuid in seen}
