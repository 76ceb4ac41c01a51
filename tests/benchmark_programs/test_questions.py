"""The questions to the hardware, asked of the stand-in: each ends with an answer, and what we claim holds there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.clock_drift import drift_ppm
from benchmarks.probes.__main__ import PROBES, assumed, question
from benchmarks.probes.peers import count_proton
from cuptiprof.data.activities import KINDS

ROOT = Path(__file__).resolve().parents[2]
NEEDS_GPU = {
    "cuda_graph_launches",
    "expandable_segments",
    "failed_allocation",
    "locked_clocks",
    "environment_records",
    "torch_profiler_beside",
    "torch_profiler_before_and_after",
    "proton_beside",
    "proton_before_and_after",
}


@pytest.fixture(scope="module")
def answers() -> dict[str, dict[str, Any]]:
    """Every question's line."""
    command = [sys.executable, "-m", "benchmarks.probes", "--all", "--device", "sim", "--seconds", "200"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    return {line["probe"]: line for line in map(json.loads, done.stdout.splitlines())}


def test_every_question_has_an_answer_marked_simulated(answers: dict[str, dict[str, Any]]) -> None:
    assert set(answers) == set(PROBES)
    assert {n: a["error"] for n, a in answers.items() if "error" in a} == {}
    assert all(a["simulated"] is True and a["question"] for a in answers.values())
    assert {n for n, a in answers.items() if "not applicable" in a["answer"]} == NEEDS_GPU


def test_what_is_claimed_holds_on_the_stand_in(answers: dict[str, dict[str, Any]]) -> None:
    kinds = answers["activity_kinds"]["answer"]["checks"]
    of_cupti = {name for name, codes in KINDS.items() if codes}
    assert set(kinds) == of_cupti
    silent = {"memory_pool", "overhead"}  # the stand-in makes none of these records
    assert {k for k, v in kinds.items() if v is True} == of_cupti - silent
    assert all(kinds[k] == "no record came" for k in silent)
    assert answers["regions_of_launches"]["answer"]["checks"] == {"callback": True}
    assert set(answers["strategies_of_counters"]["answer"]["checks"].values()) == {True}
    for name in ("graph_node_records", "graph_node_callbacks", "capture_sites", "nvtx_ranges_of_torch"):
        assert answers[name]["answer"]["as assumed"] is True, answers[name]


def test_buffers_of_every_size_lose_nothing(answers: dict[str, dict[str, Any]]) -> None:
    answer = answers["buffer_size_against_stalls"]["answer"]
    sizes = {k: v for k, v in answer.items() if k.endswith("KiB")}
    assert list(sizes) == [f"{64 << i} KiB" for i in range(8)]
    for found in sizes.values():
        assert found["cuptiprof"]["losses"] == {} and found["cuptiprof"]["records"] == answer["launches"]
        assert found["bare collector"]["bytes"] == answer["launches"] * 216  # a kernel record of CUPTI 13.0
    assert (
        answer["summary"].count(" us") == 9 and answer["summary"].endswith("; 0 lost") and len(answer["summary"]) < 600
    )
    requested = [found["bare collector"]["buffers_requested"] for found in sizes.values()]
    assert requested == sorted(requested, reverse=True) and requested[0] >= 4 * requested[3] > 0


def test_changing_the_image_and_the_clock_are_measured(answers: dict[str, dict[str, Any]]) -> None:
    image = answers["config_image_between_steps"]["answer"]
    assert image["other image each step"]["set_config_us"] > 0 and image["same image"]["step_us"] > 0
    clock = answers["timestamps_against_raw_clock"]["answer"]
    assert clock["kernels"] >= 8 and clock["all_inside"] is True
    assert abs(clock["monotonic_to_raw"]["drift_ppm"]) < 500 + 5 * clock["monotonic_to_raw"]["standard_error_ppm"]


def test_short_kernels_times_limits_and_costs(answers: dict[str, dict[str, Any]]) -> None:
    """The stand-in's user ranges have the host's time, its limit is 2,000 ranges, and decoding is where it is measured."""
    times = answers["time_by_each_way"]["answer"]
    for kernels in ("short", "long"):
        assert times[kernels]["automatic range is the record's time"] is True
        assert times[kernels]["automatic_range_us"] == times[kernels]["record_us"] < times[kernels]["user_range_us"]
    assert answers["most_ranges"]["answer"]["accepted"] == 2000 and "7" in answers["most_ranges"]["answer"]["with"]
    samples = answers["records_beside_samples"]["answer"]
    assert samples["each launch has a record"] is True and samples["error"] == ""
    assert samples["slots"]["without times"] == samples["full images"] > 0 and samples["slots"]["of no length"] == 2
    pieces = answers["cost_of_a_counted_launch"]["answer"]["us"]
    assert {"set the configuration", "start", "push", "pop", "stop", "decode a range", "evaluate a range"} < set(pieces)
    assert all(us > 0 for us in pieces.values())
    assert answers["evaluation_on_another_thread"]["answer"]["as assumed"] is True


def test_poison_shows_where_fields_are_not_written(answers: dict[str, dict[str, Any]]) -> None:
    answer = answers["poisoned_buffers"]["answer"]
    assert answer["as assumed"] is True and answer["set"]["bytes of poison in records"] > 0
    assert answer["set"]["given again"] > 0 and answer["set"]["bytes"] == 1500 * 216
    pause = answers["pause_beside_a_long_kernel"]["answer"]
    assert pause["as assumed"] is True and pause["longest_ms"] == 300 <= pause["pause_ms"] + 20
    for stop in ("stop_beside_a_capture", "counted_stop_beside_a_capture"):
        assert answers[stop]["answer"]["as assumed"] is True


def test_a_known_drift_is_found() -> None:
    at = np.linspace(0, 3600e9, 500)
    noise = np.random.default_rng(1).normal(0, 2000, 500)
    slope, error = drift_ppm(at, 7.5e-6 * at + 1e6 + noise)
    assert abs(slope - 7.5) < 5 * error and error < 0.001
    with pytest.raises(ValueError):
        drift_ppm(at[:2], noise[:2])


def test_questions_can_be_read_in_a_table() -> None:
    assert all(len(question(p)) > 20 for p in PROBES.values())
    assert assumed(PROBES["two_threads"]) == "they take turns or are reported busy."
    assert assumed(PROBES["counter_image"]) == ""


def test_kernels_in_a_profile_of_proton() -> None:
    leaf = {"frame": {"name": "add"}, "metrics": {"count": 60, "time (ns)": 5}, "children": []}
    tree = [
        {"metrics": {"count": 0}, "children": [leaf, {"children": [{**leaf, "metrics": {"count": 40}}]}]},
        {"device": 1},
    ]
    assert count_proton(tree) == 100
