"""Names to metrics without NVIDIA's library: the catalogue's own data, presets, sections, errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cuptiprof
from cuptiprof.data import chips
from cuptiprof.errors import MetricError
from cuptiprof.metrics import (
    check_chip,
    memory_path,
    name_tables,
    resolve,
    resolve_events,
    resolve_section,
    resolve_set,
    select,
)
from cuptiprof.metrics.catalogue import MAX_NAMES
from cuptiprof.metrics.expression import parse
from cuptiprof.metrics.perfworks import split_name

CHIPS = list(chips.CHIPS)
PACKAGE = Path(cuptiprof.__file__).parent
MEMORY_PATH = [
    "dram_read_throughput",
    "dram_read_transactions",
    "dram_write_throughput",
    "dram_write_transactions",
    "sysmem_read_throughput",
    "sysmem_read_transactions",
    "sysmem_write_throughput",
    "sysmem_write_transactions",
    "l2_l1_read_transactions",
    "l2_l1_read_throughput",
    "l2_l1_write_transactions",
    "l2_l1_write_throughput",
    "l2_tex_read_transactions",
    "l2_texture_read_throughput",
    "shared_load_throughput",
    "shared_load_transactions",
    "shared_store_throughput",
    "shared_store_transactions",
    "l1_cache_local_hit_rate",
    "l1_cache_global_hit_rate",
    "gld_efficiency",
    "gld_throughput",
    "gld_transactions",
    "gst_efficiency",
    "gst_throughput",
    "gst_transactions",
]


def error(name: str, chip: str = "GH100") -> str:
    with pytest.raises(MetricError) as e:
        resolve(name, chip)
    assert len(str(e.value)) < 1000
    return str(e.value)


def test_data_are_small_and_hold_together() -> None:
    files = list((PACKAGE / "metrics" / "lists").iterdir())
    assert sum(f.stat().st_size for f in files) < 300_000
    assert len(name_tables.metrics()) == 196 and len(name_tables.events()) == 82
    known = {"official-direct", "official-formula", "official-rescaled", "corrected", "derived", "legacy", "official"}
    for table in (name_tables.metrics(), name_tables.events(), name_tables.derived()):
        for entry in table.values():
            assert entry.description.endswith(".") and entry.unit, entry.name
            if entry.status == "none":
                assert not entry.expression and entry.notes
                continue
            assert entry.status in known
            assert all(split_name(n) and split_name(n).rollup for n in parse(entry.expression).inputs)  # type: ignore[union-attr]
            assert name_tables.names_of(entry.chips, CHIPS), f"{entry.name} is on no chip"
            if entry.status == "corrected":
                assert entry.notes and entry.nvidia_expression not in ("", entry.expression)
    # No name means two things.
    assert not set(name_tables.metrics()) & (set(name_tables.derived()) | set(name_tables.presets()) | {"all"})


def test_every_override_changes_something_on_its_chips() -> None:
    entries = [*name_tables.metrics().values(), *name_tables.events().values(), *name_tables.derived().values()]
    for override in name_tables.overrides():
        assert override.chips and override.chips <= set(CHIPS) and override.reason
        assert any(override.applies(e.name, e.expression) for e in entries), override


@pytest.mark.parametrize("chip", CHIPS)
def test_every_name_resolves_or_says_why_not(chip: str) -> None:
    for name, entry in {**name_tables.metrics(), **name_tables.derived()}.items():
        if entry.available_on(chip):
            (metric,) = resolve([name], chip)
            assert metric.name == name and metric.inputs
            value = metric.value({n: np.full(3, 50.0) for n in metric.inputs})
            assert value.shape == (3,) and np.isfinite(value).all()
        else:
            assert "no counterpart" in error(name, chip) or "Chips that have it: " in error(name, chip)
    assert len(resolve_events("all", chip)) == sum(e.available_on(chip) for e in name_tables.events().values())


def test_what_a_few_metrics_compute() -> None:
    (occupancy,) = resolve("achieved_occupancy", "GH100")
    assert occupancy.value({"sm__warps_active.avg.pct_of_peak_sustained_active": [50, 12.5]}).tolist() == [0.5, 0.125]
    (flops,) = resolve("flop_count_sp", "GH100")
    op = "smsp__sass_thread_inst_executed_op_f{}_pred_on.sum"
    assert flops.value({op.format("add"): 1, op.format("mul"): 10, op.format("fma"): 100}) == 211
    (packed,) = resolve("flop_count_sp", "GB100")
    more = {op.format("add2"): 1000, op.format("mul2"): 1000, op.format("fma2"): 10000}
    assert packed.value({op.format("add"): 1, op.format("mul"): 10, op.format("fma"): 100, **more}) == 44211
    (rate,) = resolve("l2_read_throughput", "GH100")
    assert rate.value(dict.fromkeys(rate.inputs, 2.0)) == 32 * 2.0 * len(rate.inputs)
    (hits,) = resolve("l1_cache_global_hit_rate", "GH100")
    assert np.isnan(hits.value(dict.fromkeys(hits.inputs, 0)))  # no loads, no rate


def test_chips_name_their_counters_differently() -> None:
    for chip, name in (("GH100", "dram__bytes_read.sum"), ("GB202", "dram__bytes_op_read.sum")):
        assert resolve("dram_read_bytes", chip)[0].expression == name
    assert "renamed" in resolve("dram_read_bytes", "GB202")[0].notes
    assert resolve_events("fb_subp0_read_sectors", "GB203")[0].expression == "dram__sectors_op_read.sum"
    assert "gmma" in resolve("stall_other", "GH100")[0].expression
    assert "gmma" not in resolve("stall_other", "GB100")[0].expression
    bytes_a_cycle = {c: resolve("roofline_l1tex_peak", c)[0].expression for c in ("GV100", "AD102", "GB202")}
    assert len(set(bytes_a_cycle.values())) == 3


def test_all_is_what_the_chip_has() -> None:
    for chip in CHIPS:
        selection = select("all", chip)
        assert len(selection.metrics) + len(selection.dropped) == 196 - 13 - 13
        assert not {"legacy", "none"} & {m.status for m in selection.metrics}
    assert "nvlink_total_data_received" in select("all", "AD102").dropped
    assert 164 <= len([n for n in select("all", "GH100").inputs if not n.startswith(("nvl", "pcie"))]) <= 168


def test_names_come_in_any_form_and_once() -> None:
    names = [m.name for m in resolve(" ipc , achieved_occupancy,,ipc", "GH100")]
    assert (
        names
        == ["ipc", "achieved_occupancy"]
        == [m.name for m in resolve(iter(["ipc", "achieved_occupancy"]), "GH100")]
    )
    assert resolve(["ipc", "occupancy"], "GH100")[0].name == "ipc"
    assert len({m.name for m in resolve("ipc,occupancy,memory,all", "GH100")}) == len(
        resolve("ipc,occupancy,memory,all", "GH100")
    )
    for bad in ("", " , ", []):
        with pytest.raises(MetricError, match="no metric is named"):
            resolve(bad, "GH100")
    with pytest.raises(MetricError, match="by text"):
        resolve([1], "GH100")  # type: ignore[list-item]
    with pytest.raises(MetricError, match="more than"):
        resolve(["ipc"] * (MAX_NAMES + 1), "GH100")


def test_presets() -> None:
    assert set(name_tables.presets()) == {"occupancy", "memory", "compute", "tensor", "roofline", "analysis"}
    for preset in name_tables.presets():
        held = set()
        for chip in CHIPS:
            selection = select(preset, chip)
            held |= {m.name for m in selection.metrics}
            assert selection.metrics and all(selection.dropped.values())
        for member in name_tables.presets()[preset][1]:
            assert member in held or member.startswith("section:"), f"{member} is on no chip"
    on_arrows = [group for arrow in memory_path() for group in arrow.metrics]
    assert len(on_arrows) == len(MEMORY_PATH)
    assert all(len(set(group) & set(MEMORY_PATH)) == 1 for group in on_arrows)
    assert {m.name for m in resolve("memory", "GH100")} >= set(MEMORY_PATH)
    assert [arrow.number for arrow in memory_path()] == list(range(1, 17))
    assert all(arrow.metrics or arrow.note for arrow in memory_path())
    stalls = [m for m in resolve("analysis", "GH100") if "issue_stalled" in m.name]
    assert len(stalls) >= 18 and resolve("tensor", "GV100")


@pytest.mark.parametrize(
    "name,says",
    [
        ("achieved_ocupancy", "Did you mean achieved_occupancy"),
        ("dram_read_thruput", "dram_read_throughput"),
        ("sm__warps_active", "sm__warps_active.sum sm__warps_active.avg sm__warps_active.min sm__warps_active.max"),
        ("l1tex__t_sector_hit_rate", "l1tex__t_sector_hit_rate.pct"),
        ("sm__throughput", "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
        ("sm__warps_active.total", "'total' is no roll-up"),
        ("sysmem_utilization", "has no counterpart in today's counters: no equivalent"),
        ("prof_trigger_00", "__prof_trigger"),
        ("launch__registers_per_thread", "result.kernels"),
        ("device__attribute_warp_size", "result.devices"),
        ("sm__maximum_warps_per_active_cycle_pct", "theoretical occupancy"),
        ("sass__inst_executed_per_opcode", "SASS metric API"),
        ("breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed", "break-down"),
        ("pmsampling:sm__cycles_active.avg", "strategy='sample'"),
        ("\x1b[31mred", "is no metric"),
        ("x" * 100_000, "is no metric"),
        ("a__" + "b" * 100_000 + ".sum", "is no metric"),
    ],
)
def test_errors_help(name: str, says: str) -> None:
    assert says in error(name)
    assert "\x1b" not in error(name)


def test_metrics_that_a_chip_lacks_name_the_chips_that_have_them() -> None:
    text = error("nvlink_receive_throughput", "AD102")
    assert "not available on AD102" in text and "GH100" in text and "AD103" not in text
    assert "GV100" not in error("tensor_precision_int_utilization", "GV100").split("hint")[1]


def test_events() -> None:
    assert [m.name for m in resolve_events(["inst_executed", "warps_launched"], "GH100")] == [
        "inst_executed",
        "warps_launched",
    ]
    # The same word is a metric and an event, and they are not the same counter.
    assert resolve("inst_executed", "GH100")[0].expression != resolve_events("inst_executed", "GH100")[0].expression
    assert resolve("warps_launched", "GH100")[0].category == "event"
    for name, says in (
        ("ipc", "is a metric, not an event"),
        ("warps_lunched", "warps_launched"),
        ("prof_trigger_03", "no counterpart"),
    ):
        with pytest.raises(MetricError, match=says):
            resolve_events(name, "GH100")


@pytest.mark.parametrize("chip,known", [("gh100", "GH100"), ("H100", "GH100"), ("b200", "GB100"), ("L4", "AD104"), ("GH200", "GH100"), ("T4", "TU104"), ("rtx 2080", "TU104"), ("4090", "AD102")])  # fmt: skip
def test_chips_are_known_by_their_products(chip: str, known: str) -> None:
    assert check_chip(chip) == known
    assert resolve("ipc", chip)[0].expression == resolve("ipc", known)[0].expression


@pytest.mark.parametrize("chip,near", [("GH10", "GH100"), ("RTX", "TU102 or TU104"), ("2080", "TU102 or TU104")])
def test_what_no_chip_is_called_is_helped(chip: str, near: str) -> None:
    with pytest.raises(MetricError, match="unknown chip") as refused:
        resolve("ipc", chip)
    assert f"did you mean {near}" in refused.value.hint


def test_a_chip_of_tomorrow_needs_the_planner() -> None:
    with pytest.raises(MetricError, match="unknown chip 'GX100'"):
        resolve("ipc", "GX100")
    # It has what GB202 has, under GB202's names.
    there = {n for m in select("all", "GB202").metrics for n in m.inputs}
    found = resolve("all", "GX100", exists=there.__contains__)
    assert {m.name for m in found} == {m.name for m in select("all", "GB202").metrics}
    assert resolve("dram_read_bytes", "GX100", exists=there.__contains__)[0].expression == "dram__bytes_op_read.sum"
    with pytest.raises(MetricError, match="ipc is not available on GX100"):
        resolve("ipc", "GX100", exists=lambda n: False)
    assert resolve_set("basic", "GX100", exists=lambda n: True).metrics
    assert resolve("ipc", "GX100", describe=lambda n: {})[0].name == "ipc"


def test_the_planner_has_the_last_word() -> None:
    with pytest.raises(MetricError, match="the planner for GH100 has no sm__inst_executed"):
        resolve("ipc", "GH100", exists=lambda name: False)
    with pytest.raises(MetricError, match="not available on AD102"):
        resolve("nvlink_receive_throughput", "AD102", exists=lambda name: False)
    with pytest.raises(MetricError, match="no counter of GH100"):
        resolve("sm__nothing.sum", "GH100", exists=lambda name: name == "sm__cycles_active.sum")
    (metric,) = resolve("a__b.sum", "GH100", describe=lambda n: {"description": "d", "unit": "byte/second"})
    assert (metric.description, metric.unit, metric.kind) == ("d", "byte/s", "throughput")


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40) | st.text("abs_.m:", max_size=30))
def test_any_name_is_a_metric_or_a_metric_error(name: str) -> None:
    for function in (resolve, resolve_events, resolve_section, resolve_set):
        try:
            function(name, "GH100")
        except MetricError as e:
            assert str(e).isprintable() or "\n" in str(e)


def test_nothing_is_loaded_before_it_is_needed() -> None:
    code = (
        "import sys, cuptiprof; print(any('cuptiprof.metrics' in m for m in sys.modules))\n"
        "import cuptiprof.metrics.name_tables as t; print(t.metrics.cache_info().currsize)\n"
        "import cuptiprof.metrics as m; m.resolve('ipc', 'GH100'); maps = open('/proc/self/maps').read()\n"
        "print('libcupti.so' in maps or 'nvperf' in maps)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["False", "0", "False"]
