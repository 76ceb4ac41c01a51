"""Which strategy "auto" takes, and what a strategy leaves out of a preset: never an error about a name that nobody typed."""

from __future__ import annotations

from typing import Any

import pytest

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.errors import MetricError
from cuptiprof.sim.sim_device import SimDevice

LINK = "pcie_total_data_transmitted"  # in a hardware configuration of its own
SEVERAL = "l2_tex_hit_rate"  # two passes by itself


def counted(sim: SimDevice, metrics: Any, *, steps: int = 0, **keywords: Any) -> Result:
    schedule = cuptiprof.schedule(wait=0, warmup=0, active=steps, repeat=1) if steps else None
    with cuptiprof.profile(device="sim", metrics=metrics, schedule=schedule, **keywords) as prof:
        for _ in range(max(steps, 1)):
            for name in ("gemm", "softmax"):
                sim.launch(name)
            if steps:
                prof.step()
    return prof.result()


def plan_of(result: Result) -> dict[str, Any]:
    plan: dict[str, Any] = result.metadata["counters"]
    return plan


@pytest.mark.parametrize("preset", ["memory", "all", "analysis"])
@pytest.mark.parametrize("steps", [0, 3])
def test_auto_can_count_every_preset(preset: str, steps: int, sim: SimDevice) -> None:
    result = counted(sim, preset, steps=steps)
    plan = plan_of(result)
    assert plan["strategy"] == "replay" and len(result.counters) > 20
    assert not any(why for name, why in plan["dropped"].items() if "several passes" in why)
    if preset == "memory":  # everything, the hit rate that takes two passes by itself included
        assert not plan["dropped"] and (result.kernels[SEVERAL] >= 0).all()


def test_auto_spreads_over_steps_what_fits(sim: SimDevice) -> None:
    result = counted(sim, ["ipc", LINK], steps=4)
    assert plan_of(result)["strategy"] == "iterate" and not plan_of(result)["dropped"]
    assert plan_of(counted(sim, ["ipc", SEVERAL], steps=4))["strategy"] == "replay"
    assert plan_of(counted(sim, ["ipc"], steps=4))["strategy"] == "replay"  # one pass: each launch as it comes


def test_without_steps_a_preset_loses_the_other_configuration(sim: SimDevice) -> None:
    """ "::gemm:1" meets a kernel once: to take configurations in turn would leave most of it empty."""
    result = counted(sim, "all", launch_count=1)
    plan = plan_of(result)
    assert plan["strategy"] == "replay" and len(result.metric_ranges) == 1
    assert LINK in plan["dropped"] and "another hardware configuration" in plan["dropped"][LINK]
    assert result.counters["ipc"][0] > 0


def test_what_was_named_is_kept_or_refused(sim: SimDevice) -> None:
    result = counted(sim, ["all", LINK], launch_count=1)  # the named one decides the configuration
    assert LINK in result.counters and "ipc" in plan_of(result)["dropped"]
    assert plan_of(counted(sim, ["ipc", LINK]))["strategy"] == "iterate"  # by turns, as no preset is in it
    with pytest.raises(MetricError, match="2 hardware configurations") as refused:
        counted(sim, ["ipc", LINK, SEVERAL])
    assert LINK in refused.value.hint and f"{SEVERAL}" in refused.value.hint and "application" in refused.value.hint
    with pytest.raises(MetricError, match="2 hardware configurations"):
        counted(sim, ["ipc", LINK], strategy="replay")


def test_iterate_leaves_out_of_a_preset_what_it_cannot(sim: SimDevice) -> None:
    result = counted(sim, "memory", steps=6, strategy="iterate")
    assert "takes several passes" in plan_of(result)["dropped"][SEVERAL]
    assert any(f"{SEVERAL} was left out" in line for line in result.summary().header)
    with pytest.raises(MetricError, match=f"^{SEVERAL}: several passes"):
        counted(sim, [SEVERAL, "ipc"], strategy="iterate")
