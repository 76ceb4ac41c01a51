"""The simulated GPU's clocks: what NVML would read, and what an SM's own clock counts, as a script of the device's time."""

from __future__ import annotations

import bisect
import math
from dataclasses import replace
from typing import TYPE_CHECKING

from cuptiprof.data.clock_state import ClockState, ClockTarget, cannot_lock

if TYPE_CHECKING:
    from cuptiprof.sim.sim_device import SimDevice

MAX_MHZ = 1980.0
BASE_MHZ = 1500.0
"""The model's own: what NVML would call the clock of the thermal design power."""
ENERGY_STEP_NS = 50_000_000
"""In such steps the counted energy moves, within what is seen of real boards."""


class SimClocks:
    """A clock reader (see ``cuptiprof.device.gpu_clocks``) whose readings a test writes."""

    def __init__(self, sim: SimDevice) -> None:
        self._sim = sim
        self._script: list[tuple[int, ClockState | None]] = [(0, ClockState(MAX_MHZ, 2619.0, 45.0, 300.0))]
        self._locks: list[tuple[int, float]] = [(0, math.inf)]  # from when on, MHz at most
        self._counted: list[_Counted] = []
        self._others: list[int] = []
        self.may_lock = True
        self.counts_energy = True
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
        state = [state for since, state in self._script if since <= now][-1]
        return state and replace(state, sm_mhz=min(state.sm_mhz, self.locked_mhz()))

    def others(self) -> list[int]:
        return list(self._others)

    def lock(self, target: ClockTarget) -> None:
        if not self.may_lock:
            raise cannot_lock("the simulated GPU does not allow it")
        self._locks.append((self._sim.now(), {"base": BASE_MHZ, "max": MAX_MHZ}.get(str(target)) or float(target)))
        self._counted = []

    def unlock(self) -> None:
        self._locks.append((self._sim.now(), math.inf))
        self._counted = []

    def locked_mhz(self) -> float:
        """What the clock is locked to; infinity: it is not."""
        return self._locks[-1][1]

    def energy_j(self) -> float | None:
        if not self.counts_energy:
            return None
        seen = self._sim.now() // ENERGY_STEP_NS * ENERGY_STEP_NS
        return self._at(seen).joules(seen)

    def cycles(self, ns: int) -> int:
        """How far an SM's clock has counted at `ns` of the device's clock."""
        return round(self._at(ns).cycles(ns))

    def _at(self, ns: int) -> _Counted:
        if not self._counted:
            self._count()
        return self._counted[bisect.bisect_right(self._counted, ns, key=lambda entry: entry.since) - 1]

    def _count(self) -> None:
        """Cycles and energy up to each change."""
        state, limit = ClockState(MAX_MHZ), math.inf
        last = _Counted(0, 0.0, 0.0, MAX_MHZ, 0.0)
        changes = sorted([*self._script, *self._locks], key=lambda entry: entry[0])
        for ns, change in changes:
            if isinstance(change, ClockState):
                state = change
            elif change is not None:
                limit = change
            last = _Counted(ns, last.cycles(ns), last.joules(ns), min(state.sm_mhz, limit), state.power_w)
            self._counted.append(last)


class _Counted:
    """What had been counted at a time, and how fast it goes on."""

    def __init__(self, since: int, cycles: float, joules: float, mhz: float, power_w: float) -> None:
        self.since = since
        self._cycles, self._joules, self._mhz, self._power_w = cycles, joules, mhz, power_w

    def cycles(self, ns: int) -> float:
        return self._cycles + (ns - self.since) * self._mhz / 1000

    def joules(self, ns: int) -> float:
        return self._joules + (ns - self.since) * self._power_w / 1e9
