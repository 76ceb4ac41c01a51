"""The recorder that is always on, beside plain tracing: python -m benchmarks.recorder [--launches N]

One program on the stand-in, launches in batches with a step after each, in turn: traced by an ordinary session, by the recorder, and by
the recorder with a snapshot every half second. CPU time of the launching thread and time by the clock, per launch. Then how long a full
recorder takes from the trigger to the file, and resident memory over all launches of one recorder.
Bars: 1.1 of plain tracing; below a second; flat.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common import arguments, finish, in_turn, ratio, summary
from benchmarks.overhead.rounds import resident_bytes
from benchmarks.soak import ON_THEIR_WAY, launcher

LAUNCHES = 10_000_000
BATCH = 1000
A_CASE = 1_000_000
"""launches of a case, a round"""
ROUNDS = 12
BUDGET = 64_000_000
EVERY = 0.5
"""s between snapshots of the recorder that saves all the time"""


class Program:
    """Launches and steps, with no more on their way than the decoder keeps up with."""

    def __init__(self) -> None:
        self._launch, self._synchronize = launcher("sim")
        self._launch(BATCH)
        self._synchronize()

    def run(self, launches: int, session: Any, step: Any, each: Any = None) -> float:
        """CPU ns of this thread in launches and steps."""
        cpu, made = 0, 0
        received = session.counts()["kernels_received"]
        while made < launches:
            began = time.thread_time_ns()
            self._launch(BATCH)
            step()
            cpu += time.thread_time_ns() - began
            made += BATCH
            while made + received - session.counts()["kernels_received"] > ON_THEIR_WAY:
                time.sleep(0.0002)
            if each is not None:
                each()
        self._synchronize()
        return cpu


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--launches", type=int, default=LAUNCHES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()

    import cuptiprof
    from cuptiprof.flight_recorder.triggers import Trigger

    program = Program()
    folder = Path(tempfile.mkdtemp(prefix="cuptiprof-recorder-"))
    snapshots = 0

    def plain() -> dict[str, float]:
        prof = cuptiprof.profile(device="sim", activities=["kernel", "memcpy", "memset"], budget=BUDGET)
        with prof:
            began = time.perf_counter_ns()
            cpu = program.run(A_CASE, prof._session, prof.step)
            clock = time.perf_counter_ns() - began
        return {"ns": cpu / A_CASE, "clock": clock / A_CASE}

    def recorded(every: float) -> dict[str, float]:
        nonlocal snapshots
        rec = cuptiprof.recorder(device="sim", budget=BUDGET, folder=folder, most=2, at_most_every=every)
        with rec:
            fire = rec._fire_of(Trigger())
            began = time.perf_counter_ns()
            cpu = program.run(A_CASE, rec._session._session, rec.step, lambda: fire("again") if every else None)
            clock = time.perf_counter_ns() - began
        snapshots += rec.counts.saved
        return {"ns": cpu / A_CASE, "clock": clock / A_CASE}

    try:
        cases = {"traced": plain, "recorder": lambda: recorded(0), "recorder, saving": lambda: recorded(EVERY)}
        found = in_turn(cases, options.rounds)
        data: dict[str, Any] = {
            "benchmark": "recorder",
            "simulated": True,
            "unit": "CPU ns of the launching thread per launch",
            "ns": {m.name: summary(m.samples) for m in found.measurements},
            "ratios": {
                "recorder to traced (bar 1.1)": ratio(found.verdict("recorder", "traced")),
                "saving twice a second to traced": ratio(found.verdict("recorder, saving", "traced")),
            },
            "snapshots": snapshots,
            **kept_up(program, options.launches, folder),
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    finish(data, options.out)


def kept_up(program: Program, launches: int, folder: Path) -> dict[str, Any]:
    """One recorder over all launches, and what a snapshot of it takes when it is full."""
    import cuptiprof

    before = resident_bytes()
    memory: list[int] = []
    took: list[float] = []
    rec = cuptiprof.recorder(device="sim", budget=BUDGET, seconds=None, folder=folder, most=2)
    with rec:
        rounds = 10
        for _ in range(rounds):
            program.run(launches // rounds, rec._session._session, rec.step)
            began = time.perf_counter()
            rec.trigger("full")
            took.append(time.perf_counter() - began)
            memory.append(resident_bytes() - before)
            print(f"{len(memory)}/{rounds}: {took[-1]:.2f} s, {memory[-1] / 1e6:.0f} MB", flush=True)
        left = rec.stop()
    return {
        "launches": launches,
        "trigger_to_file_seconds": {"median": round(statistics.median(took), 3), "most": round(max(took), 3)},
        "resident_growth_bytes": memory,
        "losses": {name: count for name, count in dict(left.losses).items() if count},
        "rows_kept": len(left.kernels),
    }


if __name__ == "__main__":
    main()
