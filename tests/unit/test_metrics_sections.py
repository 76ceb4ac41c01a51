"""ncu's sections and sets: what is counted of them, what is dropped, and bad names."""

from __future__ import annotations

import pytest

from cuptiprof.errors import MetricError
from cuptiprof.metrics import resolve_section, resolve_set, section_names, section_page, set_names


def test_sets_and_sections() -> None:
    assert set_names() == ["basic", "detailed", "full", "roofline", "nvlink", "pmsampling"]
    assert len(section_names()) == 23
    speed = resolve_section("SpeedOfLight", "GH100")
    assert speed.metrics[0].name == "sm__throughput.avg.pct_of_peak_sustained_elapsed"
    assert speed.metrics[0].description == "Compute (SM) Throughput" and len(speed.metrics) == 10
    assert "launch__waves_per_multiprocessor" in speed.dropped
    basic = {m.name for m in resolve_set("basic", "GH100").metrics}
    assert basic == {
        m.name
        for s in ("SpeedOfLight", "LaunchStats", "Occupancy", "WorkloadDistribution")
        for m in resolve_section(s, "GH100").metrics
    }
    both = resolve_section("regex:Occ.*|SpeedOfLight", "GH100")
    assert len(both.metrics) == 13  # the whole identifier must match: not the roofline charts
    # Derived ones come with their inputs, and overlap is counted once.
    roofline = resolve_section("SpeedOfLight_RooflineChart", "GH100")
    assert len(roofline.inputs) < sum(len(m.inputs) for m in roofline.metrics)
    assert "derived__sm__sass_thread_inst_executed_op_ffma_pred_on_x2" in {m.name for m in roofline.metrics}
    page = section_page("SpeedOfLight", "GH100")
    assert ("header", "Duration", "gpu__time_duration.sum") in page


def test_sampled_parts_of_sections() -> None:
    ranges, samples = resolve_set("full", "GH100"), resolve_set("full", "GH100", sampling=True)
    assert not any("Triage" in m.name for m in ranges.metrics)
    assert any("Triage" in m.name for m in samples.metrics)
    assert "PM sampling" in ranges.dropped["pmsampling:l1tex__t_sector_hit_rate.pct"]
    states = resolve_set("pmsampling", "GH100", sampling=True)
    assert "smsp__warps_issue_stalled_wait.avg" in {m.name for m in states.metrics}  # without ncu's prefix


@pytest.mark.parametrize("section,says", [("speedoflight", "Did you mean SpeedOfLight"), ("regex:(", "unmatched"), ("regex:Nothing", "matches no section"), ("Nvlink_Tables", "shows no counters"), ("regex:" + "(a+)+" * 20 + "$", "matches no section")])  # fmt: skip
def test_bad_sections(section: str, says: str) -> None:
    with pytest.raises(MetricError, match=says):
        resolve_section(section, "GH100")
    with pytest.raises(MetricError, match="is no set"):
        resolve_set("complete", "GH100")
