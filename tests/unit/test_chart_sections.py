"""What the sections of charts hold, against sums over rows and the analyses of which they are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from charted_run import OUTLIER, STEPS, charted_run
from report_results import HOSTILE, make_result

from cuptiprof.analysis.allocators.allocations import allocations
from cuptiprof.analysis.allocators.allocator_memory import memory_timeline
from cuptiprof.analysis.counter_values.launch_sizes import estimated_occupancy
from cuptiprof.analysis.work.queue_lengths import queue_lengths
from cuptiprof.page.section import Section
from cuptiprof.page.sections import (
    kernel_time_section,
    memory_section,
    occupancy_section,
    over_time_section,
    roofline_section,
    step_section,
)

EVERY = (
    kernel_time_section.kernel_times,
    memory_section.memory,
    occupancy_section.occupancy,
    over_time_section.over_time,
    roofline_section.roofline_chart,
    step_section.step_times,
)


def of(section: Section | None, table: int = 0) -> dict[str, list]:
    assert section is not None
    return dict(section.tables[table].content.data)


def test_kernel_times() -> None:
    run = charted_run()
    data = of(kernel_time_section.kernel_times(run))
    lasted = run.kernels["duration"]
    edges = [step * 10**power for power in range(12) for step in (1, 2, 5)]
    counts = {(low, high): int(((lasted >= low) & (lasted < high)).sum()) for low, high in pairwise(edges)}
    first, last = (f(i for i, n in enumerate(counts.values()) if n) for f in (min, max))
    assert data["launches"] == list(counts.values())[first : last + 1]
    assert sum(data["time_ns"]) == lasted.sum() and sum(data["launches_pct"]) == pytest.approx(100)


@pytest.mark.parametrize(("ns", "bin_"), [(0, "1ns\N{EN DASH}2ns"), (999, "500ns\N{EN DASH}1us"), (1_000, "1us\N{EN DASH}2us"), (10**10, "10s\N{EN DASH}20s")])  # fmt: skip
def test_bins_of_kernel_times_by_hand(ns: int, bin_: str) -> None:
    run = make_result({"kernels": [{"name": "k", "start": 5, "end": 5 + ns}]})
    assert of(kernel_time_section.kernel_times(run))["took"] == [bin_]


def test_occupancy() -> None:
    run = charted_run()
    data = of(occupancy_section.occupancy(run))
    found, lasted = estimated_occupancy(run), run.kernels["duration"]
    assert sum(data["launches"]) == np.isfinite(found).sum() == len(run.kernels)
    for i, (launches, ns) in enumerate(zip(data["launches"], data["time_ns"], strict=True)):
        mine = (found >= 5 * i) & ((found < 5 * i + 5) | (i == 19))
        assert (launches, ns) == (mine.sum(), lasted[mine].sum())
    assert sum(data["kernels"]) == 5


def test_steps_and_the_one_that_stands_out() -> None:
    section = step_section.step_times(charted_run())
    data = of(section)
    assert len(data["step"]) == STEPS
    assert [i for i, ns in enumerate(data["outlier_ns"]) if ns == ns] == [OUTLIER]  # NaN is not itself
    assert data["outlier_ns"][OUTLIER] == data["total_ns"][OUTLIER]
    assert section is not None and section.summary.startswith("1 of 8 steps stand out")


def test_memory() -> None:
    run = charted_run()
    section = memory_section.memory(run)
    ours, theirs = of(section, 0), memory_timeline(run, 0)
    assert ours["allocated_bytes"] == theirs.allocated.tolist() and ours["reserved_bytes"] == theirs.reserved.tolist()
    by_calls = of(section, 1)
    for i, (_, _, pool) in enumerate(allocations(run.memory).pools()):
        assert max(by_calls[f"kind{i}_bytes"]) == pool.peak()[1]


def test_memory_of_many_events_keeps_its_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_section, "MOST_POINTS", 7)
    run = charted_run()
    section = memory_section.memory(run)
    data = of(section)
    assert len(data["time_ns"]) == 7 and max(data["allocated_bytes"]) == memory_timeline(run, 0).peak()[0]
    assert section is not None and "largest" in section.tables[0].content.footers[0]


def test_over_time() -> None:
    run = charted_run()
    section = over_time_section.over_time(run)
    assert section is not None
    titles = [chart["title"] for chart in section.facts["charts"]]
    assert titles == ["GPU 0: utilisation", "GPU 0: bandwidth of copies and sets", "GPU 0: launches that wait"]
    queues = of(section, 2)
    for i, queue in enumerate(queue_lengths(run)):
        assert max(queues[f"curve{i}"]) == queue.points.maximum
    for chart in section.facts["charts"]:
        data = of(section, chart["table"])
        assert chart["x"] in data and all(series["key"] in data for series in chart["series"])


@pytest.mark.parametrize("make", EVERY, ids=lambda make: make.__name__)
def test_nothing_gives_no_section(make) -> None:
    assert make(make_result({})) is None


def test_hostile_names_are_packed() -> None:
    run = charted_run(name=HOSTILE)
    for make in EVERY:
        if (section := make(run)) is not None:
            assert "<" not in section.packed()
