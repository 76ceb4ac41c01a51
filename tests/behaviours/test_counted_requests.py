"""What is asked of counters and what is said: denied, nothing selected, bad requests, plans, saved results."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from behaviour_fixtures import why_denied
from gpu import ScenarioGpu
from scenarios import CHEAP, collected, measured

import cuptiprof
from cuptiprof.counters.live import CounterWarning
from cuptiprof.errors import CuptiError, MetricError

pytest_plugins = ["behaviour_fixtures"]
counting = pytest.mark.usefixtures("counting")
OPTION = "NVreg_RestrictProfilingToAdminUsers"


def test_counters_are_had_or_the_driver_option_is_named(gpu: ScenarioGpu) -> None:
    denied = why_denied(gpu)
    if denied:
        assert OPTION in denied
        with pytest.raises(CuptiError) as caught:
            cuptiprof.profile(device=gpu.device, metrics=CHEAP, strategy="sample").start()
        assert caught.value.code == 35 and OPTION in caught.value.hint
    else:
        result = collected(gpu, lambda: gpu.launch("k"), metrics=CHEAP)
        assert np.isfinite(result.counters["ipc"]).all() and len(result.metric_ranges) == 1
    assert len(collected(gpu, lambda: gpu.launch("k")).kernels) == 1


@counting
def test_communicating_kernels_are_left_out_unless_asked_for(gpu: ScenarioGpu) -> None:
    def run(**more: Any) -> cuptiprof.Result:
        def body() -> None:
            gpu.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL")
            gpu.launch("k")

        return collected(gpu, body, metrics=CHEAP, **more)

    result = run()
    assert measured(result) == ["k"]
    assert any("wait for other GPUs" in n for n in result.metadata["counters"]["notes"])
    assert len(run(communicating=True).metric_ranges) == 2


@counting
def test_nothing_selected_is_said(gpu: ScenarioGpu) -> None:
    prof = cuptiprof.profile(device=gpu.device, metrics=CHEAP, regions="nowhere").start()
    gpu.launch("k", count=5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        prof.stop()
    said = [str(w.message) for w in caught]
    assert any("no kernel was selected" in s for s in said) and any("no kernel matched" in s for s in said)
    assert len(prof.result().metric_ranges) == 0


@counting
def test_results_survive_saving(gpu: ScenarioGpu, tmp_path: Path) -> None:
    result = collected(
        gpu, lambda: [gpu.launch(n, count=3) for n in ("a", "b", "c")], metrics=[*CHEAP, "gld_efficiency"]
    )
    result.save(tmp_path / "run.cuptiprof")
    again = cuptiprof.open(tmp_path / "run.cuptiprof")
    np.testing.assert_array_equal(again.counters["ipc"], result.counters["ipc"])
    assert again.metadata["counters"]["passes"] == result.metadata["counters"]["passes"]
    assert str(again.metrics_table()) == str(result.metrics_table())
    assert ("SIMULATED" in str(again.metrics_table())) == gpu.simulated


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"metrics": ["achieved_ocupancy"]}, "achieved_occupancy"),
        ({"metrics": ["ipc"], "strategy": "replays"}, "one of: auto, replay"),
        ({"metrics": ["ipc"], "strategy": "sample", "sampling_interval": "1 minute"}, "sampling interval"),
        ({"metrics": ["ipc"], "strategy": "sample", "sampling_interval": "1ns"}, "1us to 10s"),
        ({"metrics": ["ipc"], "strategy": "sample", "kernels": "gemm"}, "does not look at kernels"),
        ({"metrics": ["ipc"], "region_levels": 2}, "repeatable=True"),
        ({"set": "basics"}, "basic"),
        ({"section": "SpeedOfLite"}, "SpeedOfLight"),
    ],
)
def test_bad_requests(gpu: ScenarioGpu, keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(MetricError) as caught:
        cuptiprof.profile(device=gpu.device, **keywords).start()
    assert message in str(caught.value)
    assert len(collected(gpu, lambda: gpu.launch("k")).kernels) == 1


def test_explain_says_what_will_happen(gpu: ScenarioGpu, capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CounterWarning)  # denied counters are told elsewhere
        result = collected(gpu, lambda: gpu.launch("k"), metrics=[*CHEAP, "gld_efficiency"], explain=True)
    said = capsys.readouterr().err
    passes = result.metadata["counters"]["passes"]
    assert passes > 1 and f"strategy replay, {passes} passes" in said
    assert "sm__warps_active" in said and f"each selected kernel runs {passes} times" in said
