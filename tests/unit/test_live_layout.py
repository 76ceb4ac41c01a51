"""Lines for a terminal of whatever size."""

from __future__ import annotations

import pytest
from watched_programs import made_up

from cuptiprof.cli.live_layout import live_lines, one_line
from cuptiprof.text.names import display_width
from cuptiprof.watch.live_figures import LiveSum


@pytest.mark.parametrize("width", [1, 10, 20, 40, 69, 70, 80, 200])
@pytest.mark.parametrize("height", [0, 1, 2, 3, 5, 8, 24, 100])
def test_never_more_than_there_is_room_for(width: int, height: int) -> None:
    for figures in (
        made_up(),
        made_up(gpus=(), kernels=(), regions=(), copies=()),
        made_up(losses={"pool_exhausted": 7}),
    ):
        lines = live_lines(figures, width, height)
        assert len(lines) <= height
        assert all(display_width(line.text) <= width for line in lines)


def test_what_there_is_to_see() -> None:
    text = [line.text for line in live_lines(made_up(losses={"pool_exhausted": 7}, missed=3), 100, 24)]
    assert text[0] == "cuptiprof:  12 s  running  (SIMULATED)  train.py --epochs 1 (4711)"
    assert text[1] == "GPU 0 87.2% busy (61.5% so far)   GPU 1 0.0% busy (12.0% so far)   4,321 launches/s (123,456)"
    assert text[2] == "Lost: 7 pool_exhausted   3 rows not shown here"
    assert text[3] == "HtoD 1.0000MB/s (4.0000MB)   GPU memory 3.0000GB   kept 12.000MB of 256.00MB"
    assert text[4].split() == ["Now", "Time", "Calls", "Avg", "Kernel", "(17", "of", "77)"]
    assert text[5].split()[:4] == ["1.0%", "1.00000s", "1,000", "1.0000ms"]
    assert text[5].endswith("void kernel0<float, 0>(float*, int)")
    assert text[-2].split() == ["Now", "Time", "Calls", "Avg", "Region"]
    assert text[-1].split() == ["10.0%", "500.00ms", "10", "50.000ms", "train/fwd"]
    assert len(text) == 24


def test_narrow_terminals_keep_time_and_name() -> None:
    rows = [line.text for line in live_lines(made_up(), 40, 12)]
    assert rows[3].split()[:3] == ["Now", "Time", "Kernel"]
    assert "kernel0" in rows[4]


def test_the_end_has_no_now() -> None:
    text = [line.text for line in live_lines(made_up(state="stopped"), 100, 12)]
    assert "Now" not in "".join(text) and "/s" not in "".join(text)
    assert one_line(made_up(state="stopped")) == (
        "ended after 12.3 s, GPU 0 61.5% busy, GPU 1 12.0% busy, 123,456 launches  (SIMULATED)"
    )


def test_a_line_of_a_log() -> None:
    kernel = LiveSum("gemm", 1, 0, 10**9, 1, 0, 450_000_000)
    assert one_line(made_up(kernels=(kernel,), losses={"pool_exhausted": 1}, simulated=False)) == (
        "12 s, GPU 0 87.2% busy (61.5% so far), GPU 1 0.0% busy (12.0% so far), 4,321 launches/s (123,456), "
        "HtoD 1.0000MB/s (4.0000MB), most: gemm 45%, Lost: 1 pool_exhausted"
    )
