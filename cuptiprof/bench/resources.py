"""What a call costs beside time: energy and memory. Measured after timing, on request."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from cuptiprof.bench.sampling import MeasuredCall
from cuptiprof.device.gpu import Meter

ENERGY_SECONDS = 1.0
MIN_UPDATES = 10
"""of the board's counter, which moves every 20 to 100 ms: the calls between the first and the last are known to a tenth of that."""
READ_EVERY_NS = 5_000_000


@dataclass(frozen=True)
class Resources:
    """Of one call: energy of the whole board, J (NaN: not known), and the bytes that it allocates at its highest beyond what was
    there before (None: not known)."""

    energy_j: float = math.nan
    peak_memory: int | None = None
    notes: tuple[str, ...] = ()


def measure_resources(
    gpu: Meter, call: MeasuredCall, call_ns: float, max_seconds: float, *, energy: bool, memory: bool
) -> Resources:
    """Run the call for them as often as it takes, for at most `max_seconds`.

    Args:
        call_ns: about what a call takes.
    """
    joules, notes = _energy(gpu, call, call_ns, max_seconds) if energy else (math.nan, [])
    peak = None
    if memory:
        if call.setup is not None:
            call.setup()
        peak = gpu.peak_memory(call.function)
        if peak is None:
            notes.append(
                "its peak memory is not known: PyTorch's allocator of a GPU tells it, which is not in use here"
            )
    return Resources(joules, peak, tuple(notes))


def _energy(gpu: Meter, call: MeasuredCall, call_ns: float, max_seconds: float) -> tuple[float, list[str]]:
    """J of a call, from calls between two moves of the board's counter."""
    if gpu.device is None:
        return math.nan, ["its energy is not known: there is no GPU"]
    at_once = max(1, round(READ_EVERY_NS / max(call_ns, 1.0)))
    gpu.synchronize()
    last = gpu.clocks.energy_j()
    if call.agree(last is None):
        return math.nan, [f"its energy is not known: {gpu.clocks.why_not or 'the GPU does not count it'}"]
    moves: list[tuple[int, float]] = []  # calls so far, J
    calls, began, real_began = 0, gpu.now(), time.monotonic()
    while True:
        for _ in range(at_once):
            if call.setup is not None:
                call.setup()
            call.function()
        gpu.synchronize()
        calls += at_once
        now = gpu.clocks.energy_j()
        if now is not None and last is not None and now != last:
            moves.append((calls, now))
            last = now
        seconds = (gpu.now() - began) / 1e9
        lacks = call.agree(seconds < ENERGY_SECONDS or len(moves) <= MIN_UPDATES)
        if not lacks or call.agree(max(seconds, time.monotonic() - real_began)) >= max_seconds:
            break
    if len(moves) <= MIN_UPDATES:
        return math.nan, [
            f"its energy is not known: the board's counter moved {len(moves)} times in {seconds:.2g} s; give it longer (max_seconds=)"
        ]
    (first_calls, first), (last_calls, last) = moves[0], moves[-1]
    notes = ["its set-up is in its energy"] if call.setup is not None else []
    return (last - first) / (last_calls - first_calls), notes
