"""Several ranks measure together: the longest counts, all call the function equally often, none waits for ever."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cuptiprof
from cuptiprof.errors import BenchError

PRELUDE = """
import json, sys, time, torch, torch.distributed as dist
import cuptiprof
from cuptiprof.bench import Count
from cuptiprof.data.clock_state import ClockState
from cuptiprof.device.devices import SimulatedDevice

rank, folder = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
calls = 0


def answer(m, **more):
    counted = {"taken": len(m.samples) + len(m.discarded), "warmup": m.warmup_calls, "notes": list(m.notes), "calls": calls}
    print(json.dumps({"median": m.median, "samples": m.samples.tolist(), "batch": m.batch, **counted, **more}))
    dist.destroy_process_group()

"""


def on_two(code: str, folder: Path) -> list[dict[str, Any]]:
    """What each of two processes prints."""
    script = folder / "rank.py"
    script.write_text(PRELUDE + code)
    started = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        said = [p.communicate(timeout=120) for p in started]
    finally:
        for p in started:
            p.kill()
    assert [p.returncode for p in started] == [0, 0], said
    return [json.loads(out.splitlines()[-1]) for out, _ in said]


@pytest.mark.parametrize("strategy", ["wall", "cpu"])
def test_the_longest_of_two_on_the_host(tmp_path: Path, strategy: str) -> None:
    """Every tenth call of rank 0 is the slow one, else rank 1 is. The function communicates: a call more on one side, and it hangs."""
    first, second = on_two(
        f"""
def step():
    global calls
    calls += 1
    until = time.perf_counter_ns() + (2_000_000 if (rank == 0) == (calls % 10 == 0) else 1_000_000)
    while time.perf_counter_ns() < until:
        pass
    dist.all_reduce(torch.ones(1))

answer(cuptiprof.bench(step, device="host", strategy={strategy!r}, stop=Count(30), over_ranks=True, warmup_seconds=0.2))
""",
        tmp_path,
    )
    assert first["samples"] == second["samples"] and first["calls"] == second["calls"]
    assert first["warmup"] == second["warmup"] and first["batch"] == second["batch"]
    assert first["median"] >= 2_000_000
    assert any("longest of 2 ranks" in n and "rank 1" in n for n in second["notes"])


@pytest.mark.parametrize(("strategy", "slow_ms"), [("kernel", (40, 90)), ("event", (60, 200)), ("graph", (60, 400))])
def test_kernels_of_the_slower_rank_and_its_discarded_samples(
    tmp_path: Path, strategy: str, slow_ms: tuple[int, int]
) -> None:
    """On rank 1 kernels take half as long again, and its clock is held down for a while: rank 0 leaves those samples out too."""
    first, second = on_two(
        f"""
device = SimulatedDevice(virtual_clock=True)
if rank == 1:
    device.clocks.at(device.sim.now() + {slow_ms[0]}_000_000, ClockState(990.0))
    device.clocks.at(device.sim.now() + {slow_ms[1]}_000_000, ClockState(1980.0))

def step():
    global calls
    calls += 1
    device.sim.launch("k", duration_ns=150_000 if rank else 100_000)

m = cuptiprof.bench(step, device=device, strategy={strategy!r}, stop=Count(400), over_ranks=True, max_seconds=20)
answer(m, why=sorted({{d.reason for d in m.discarded}}), places=m.places().tolist())
""",
        tmp_path,
    )
    assert first["samples"] == second["samples"] and first["median"] == pytest.approx(150_000, rel=0.03)
    assert first["places"] == second["places"] and first["taken"] == second["taken"] > len(first["samples"])
    assert first["calls"] == second["calls"]
    assert first["why"] == ["not usable on another rank"] and first["why"] != second["why"]


def test_energy_and_comparing_end_on_all_ranks_together(tmp_path: Path) -> None:
    first, second = on_two(
        """
device = SimulatedDevice(virtual_clock=True)
device.clocks.counts_energy = rank == 0

def step():
    global calls
    calls += 1
    dist.all_reduce(torch.ones(1))
    device.sim.launch("k", duration_ns=300_000 if rank else 100_000)

found = cuptiprof.compare({"a": step, "b": step}, device=device, stop=Count(40), over_ranks=True, energy=True)
answer(found["b"], kind=found.verdicts["b"].kind.value)
""",
        tmp_path,
    )
    assert first["samples"] == second["samples"] and first["kind"] == second["kind"] != "SLOWER"
    assert any("energy is not known" in n for n in first["notes"]) and first["calls"] == second["calls"]


def test_without_a_group_it_is_an_error() -> None:
    with pytest.raises(BenchError, match=r"torch\.distributed") as caught:
        cuptiprof.bench(lambda: None, device="host", over_ranks=True)
    assert "init_process_group" in caught.value.hint
