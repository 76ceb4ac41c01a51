"""The simulated GPU's clocks: what NVML would read, and what an SM's own clock counts, as a script of the device's time."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

from cuptiprof.data.clock_state import ClockState

if TYPE_CHECKING:
    from cuptiprof.sim.sim_device import SimDevice


class SimClocks:
    """A clock reader (see ``cuptiprof.device.gpu_clocks``) whose readings a test writes."""

    def __init__(self, sim: SimDevice) -> None:
        self._sim = sim
        self._script: list[tuple[int, ClockState | None]] = [(0, ClockState(1980.0, 2619.0, 45.0, 300.0))]
        self._counted: list[tuple[int, float, float]] = []  # from when on, cycles until then, MHz
        self._others: list[int] = []
        self.why_not = ""

    def at(self, ns: int, state: ClockState | None) -> None:
        """From `ns` of the device's clock on readings are `state`; None: they fail, and the clock goes on as before."""
        self._script = sorted([*self._script, (ns, state)], key=lambda entry: entry[0])
        self._counted = []
        if state is None:
            self.why_not = "the simulated clocks cannot be read"

    def set_others(self, pids: list[int]) -> None:
        """Process IDs of other programs on the GPU."""
        self._others = pids

    def read(self) -> ClockState | None:
        now = self._sim.now()
        return [state for since, state in self._script if since <= now][-1]

    def cycles(self, ns: int) -> int:
        """How far an SM's clock has counted at `ns` of the device's clock."""
        if not self._counted:
            self._count()
        since, before, mhz = self._counted[bisect.bisect_right(self._counted, ns, key=lambda entry: entry[0]) - 1]
        return round(before + (ns - since) * mhz / 1000)

    def _count(self) -> None:
        since, cycles, mhz = 0, 0.0, 1980.0
        for ns, state in self._script:
            cycles += (ns - since) * mhz / 1000
            since, mhz = ns, state.sm_mhz if state is not None else mhz
            self._counted.append((since, cycles, mhz))

    def others(self) -> list[int]:
        return list(self._others)
