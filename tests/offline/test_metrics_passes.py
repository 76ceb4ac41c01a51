"""The catalogue against NVIDIA's own planner: what each chip has, and in how many passes. No GPU."""

from __future__ import annotations

import csv
import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cuptiprof import _core, metrics
from cuptiprof.data import chips
from cuptiprof.errors import MetricError
from cuptiprof.metrics import name_tables
from cuptiprof.metrics.catalogue import resolve_events
from cuptiprof.metrics.expression import parse
from cuptiprof.metrics.library import count_passes, open_planner
from cuptiprof.metrics.lookup import from_entry
from cuptiprof.metrics.perfworks import split_name
from cuptiprof.metrics.target import make_target

pytest_plugins = ["nvidia_libraries"]

DATA = Path(__file__).resolve().parents[1] / "data" / "metrics"
CHIPS = ("GV100", "TU102", "GA100", "GA102", "AD102", "GH100", "GB100", "GB202")

OCCUPANCY_IPC_DRAM = [
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm__inst_executed.avg.per_cycle_active",
    "dram__bytes_read.sum.per_second",
    "dram__bytes_write.sum.per_second",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
]
L1_HIT, L2_HIT = "l1tex__t_sector_hit_rate.pct", "lts__t_sector_hit_rate.pct"
TENSOR_CYCLES = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
TENSOR_INSTRUCTIONS = "sm__inst_executed_pipe_tensor.sum"
# Fourteen of the names that ncu's PmSampling section has for GH100.
TRIAGE = [
    "FE_B.TriageCompute.gr__ctas_launched_realtime.sum.per_cycle_elapsed",
    "GPC_B.TriageCompute.gpc__cgas_launched.sum.per_cycle_elapsed",
    "GPC_B.TriageCompute.gpc__cgas_active_realtime.avg.per_cycle_elapsed",
    "TPC.TriageCompute.sm__cycles_active.avg.per_cycle_elapsed",
    "TPC.TriageCompute.sm__inst_executed_realtime.avg.per_cycle_active",
    "TPC.TriageCompute.sm__inst_executed_realtime.avg.pct_of_peak_sustained_elapsed",
    "TPC.TriageCompute.sm__inst_executed_pipe_alu_realtime.avg.pct_of_peak_sustained_elapsed",
    "TPC.TriageCompute.sm__pipe_fp64_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed",
    "TPC.TriageCompute.sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed",
    "SM_A.TriageCompute.sm__inst_executed_pipe_xu_realtime.avg.pct_of_peak_sustained_elapsed",
    "SM_A.TriageCompute.l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
    "SM_A.TriageCompute.l1tex__data_pipe_lsu_wavefronts.avg",
    "LTS.TriageCompute.lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "LTS.TriageCompute.lts__average_t_sector_hit_rate_realtime.pct",
]

Planners = Callable[[str], _core.MetricPlanner]


@pytest.fixture(scope="module")
def library(cupti_13_0: str) -> _core.CuptiLibrary:
    return _core.load_cupti(cupti_13_0, "test")


@pytest.fixture(scope="module")
def planner(library: _core.CuptiLibrary) -> Iterator[Planners]:
    """One host object a chip for all tests."""
    open_once = functools.lru_cache(maxsize=None)(lambda chip: open_planner(chip, library))
    yield open_once
    open_once.cache_clear()


def expected(file: str) -> list[dict[str, str]]:
    with open(DATA / file, newline="") as f:
        return list(csv.DictReader(f))


def asked(planner: _core.MetricPlanner) -> Callable[[str], bool]:
    """``exists`` of a planner, each name asked for once."""
    return functools.lru_cache(maxsize=None)(lambda name: planner.properties(name) is not None)


@pytest.mark.parametrize("chip", CHIPS)
def test_passes_of_every_nvprof_metric(chip: str, planner: Planners) -> None:
    names = set()
    for row in expected("nvprof_passes.csv"):
        name, passes = row["name"], row[chip]
        names.add(name)
        if passes.isdigit():
            (metric,) = metrics.resolve(name, chip, describe=planner(chip).properties)
            assert count_passes(planner(chip), metric.inputs) == int(passes), name
            assert metrics.resolve(name, chip) == [metric]  # the data alone say the same
            continue
        with pytest.raises(MetricError) as error:
            metrics.resolve(name, chip)
        if passes == "no":
            assert "not available on " + chip in error.value.message
            assert "Chips that have it: G" in error.value.hint or "Chips that have it: T" in error.value.hint
            assert chip not in error.value.hint.replace(",", "").split()
        else:
            assert "no counterpart" in error.value.message and len(error.value.message.split(": ")[1]) > 5
    assert names == set(name_tables.metrics())


def chips_of(library: _core.CuptiLibrary) -> list[str]:
    # The library lists GV11B but refuses to plan for it.
    return [chip for chip in _core.metric_chips(library) if chip != "GV11B"]


def test_the_catalogue_knows_every_chip_of_the_library(library: _core.CuptiLibrary) -> None:
    assert sorted(chips.CHIPS) == sorted(chips_of(library))
    with pytest.raises(MetricError):
        open_planner("GV11B", library).properties("sm__cycles_active.sum")


@pytest.mark.parametrize("chip", chips.CHIPS)
def test_availability_is_what_the_library_says(chip: str, planner: Planners) -> None:
    """For metrics, events, rooflines, ncu's derived names and sections, on all chips."""
    exists = asked(planner(chip))
    offline, online = make_target(chip), make_target(chip, exists)
    for table in (name_tables.metrics(), name_tables.events(), name_tables.derived()):
        for entry in table.values():
            if not entry.expression:
                continue
            expression, _ = offline.expressions(entry)[0]
            has = all(map(exists, parse(expression).inputs))
            assert entry.available_on(chip) == has, entry.name
            if has:
                assert from_entry(entry, online) == from_entry(entry, offline)
    planner(chip).plan(list(metrics.select("all", chip).inputs))  # all have a schedule
    planner(chip).plan(
        [n for e in name_tables.derived().values() if e.available_on(chip) for n in from_entry(e, offline).inputs]
    )
    for name in metrics.set_names():
        by_data, by_library = metrics.resolve_set(name, chip), metrics.resolve_set(name, chip, exists=exists)
        assert [m.name for m in by_data.metrics] == [m.name for m in by_library.metrics]
        assert set(by_data.dropped) == set(by_library.dropped)


@pytest.mark.parametrize("chip", CHIPS)
def test_all_and_events_can_be_planned(chip: str, planner: Planners) -> None:
    selection = metrics.select("all", chip, exists=asked(planner(chip)))
    together = [n for n in selection.inputs if not n.startswith(("pcie__", "nvl"))]
    assert 164 <= len(together) <= 167
    assert count_passes(planner(chip), together) in ((32,) if chip == "GV100" else (16, 17, 18))
    # PCIe and NVLink combine with each other, not with the rest.
    assert len(planner(chip).plan(list(selection.inputs))) == 2
    events = resolve_events("all", chip, exists=asked(planner(chip)))
    assert len(events) == sum(e.available_on(chip) for e in name_tables.events().values()) >= 71
    assert planner(chip).plan(sorted({n for e in events for n in e.inputs}))


@pytest.mark.parametrize("chip", CHIPS)
def test_sections(chip: str, planner: Planners, library: _core.CuptiLibrary) -> None:
    for row in expected("ncu_section_passes.csv"):
        section, want = row["section"], row[chip]
        if section in ("Nvlink_Tables", "Nvlink_Topology"):
            with pytest.raises(MetricError, match="no counters"):
                metrics.resolve_section(section, chip)
            continue
        selection = metrics.resolve_section(section, chip)
        counted = [m.name for m in selection.metrics if m.status == "perfworks"]
        if want == "-":
            assert not counted
            continue
        count, passes = want.split("/")
        # The table was made for ranges; this one can only be sampled.
        only_sampled = {"TriageCompute.ctc__throughput.avg.pct_of_peak_sustained_elapsed"} & set(counted)
        assert len(counted) - len(only_sampled) == int(count), section
        if passes == "-2":
            sampling = section.startswith("PmSampling")
            groups = (open_planner(chip, library, sampling=True) if sampling else planner(chip)).plan(counted)
            assert (sampling or len(groups) > 1) and {n for g in groups for n in g.metrics} == set(counted)
        else:
            # A schedule depends a little on the order of the names: one of 160 differs, by one pass.
            groups = planner(chip).plan(counted)
            slack = 1 if (section, chip) == ("MemoryWorkloadAnalysis_Tables", "GV100") else 0
            assert abs(sum(g.passes for g in groups) - int(passes)) <= slack, section


@pytest.mark.parametrize(
    "name,chip,count,passes",
    [("basic", "GA100", 22, 10), ("basic", "GH100", 22, 9), ("detailed", "GA100", 101, 13), ("detailed", "GH100", 110, 12), ("full", "GA100", 189, 22), ("full", "GH100", 227, 26), ("roofline", "GA100", 69, 14), ("roofline", "GH100", 97, 17)],
)  # fmt: skip
def test_sets(name: str, chip: str, count: int, passes: int, planner: Planners) -> None:
    selection = metrics.resolve_set(name, chip)
    counted = [m.name for m in selection.metrics if m.status == "perfworks" and not m.name.startswith("pcie__")]
    assert len(counted) == count
    # Large sets schedule within one pass of what another order of the same names gave.
    assert abs(count_passes(planner(chip), counted) - passes) <= (0 if name == "basic" else 1)


@pytest.mark.parametrize("chip", ["TU102", "GA100", "AD102", "GH100", "GB100"])
def test_passes_of_ranges(chip: str, planner: Planners) -> None:
    def passes(*names: str) -> int:
        return count_passes(planner(chip), OCCUPANCY_IPC_DRAM + list(names))

    first = 2 if chip == "TU102" else 1
    (gld_efficiency,) = metrics.resolve("gld_efficiency", chip)[0].inputs
    assert passes() == first
    assert passes(L1_HIT, TENSOR_CYCLES) == first
    assert passes(L1_HIT, L2_HIT, TENSOR_INSTRUCTIONS) == 2
    assert count_passes(planner(chip), [L2_HIT]) == 2
    assert passes(L1_HIT, L2_HIT, TENSOR_INSTRUCTIONS, gld_efficiency) == 3


def test_passes_of_sampling(library: _core.CuptiLibrary) -> None:
    sampler = open_planner("GH100", library, sampling=True)
    (gld_efficiency,) = metrics.resolve("gld_efficiency", "GH100")[0].inputs
    assert count_passes(sampler, OCCUPANCY_IPC_DRAM) == 1
    assert count_passes(sampler, [*OCCUPANCY_IPC_DRAM, L1_HIT, TENSOR_CYCLES]) == 3
    assert count_passes(sampler, [*OCCUPANCY_IPC_DRAM, L1_HIT, L2_HIT, TENSOR_INSTRUCTIONS]) == 4
    with pytest.raises(MetricError):
        sampler.plan([gld_efficiency])
    for chip in ("GH100", "GB100"):
        named = {m.name for m in metrics.resolve_section("PmSampling", chip, sampling=True).metrics}
        assert named.issuperset(TRIAGE) and len(TRIAGE) == 14
        assert count_passes(open_planner(chip, library, sampling=True), TRIAGE) == 1


@pytest.mark.parametrize("chip", CHIPS)
def test_presets(chip: str, planner: Planners) -> None:
    """What docs/metrics.md promises of them."""

    def passes(preset: str) -> int:
        selection = metrics.select(preset, chip, exists=asked(planner(chip)))
        assert selection.metrics == metrics.select(preset, chip).metrics
        return count_passes(planner(chip), selection.inputs)

    assert passes("occupancy") == 1
    assert passes("tensor") <= (2 if chip == "TU102" else 1)
    assert passes("compute") == 4
    assert passes("memory") == (10 if chip == "GV100" else 4)
    assert passes("roofline") == 3 if chip in ("GV100", "TU102") else passes("roofline") in (7, 8)
    assert 11 <= passes("analysis") <= (18 if chip == "GV100" else 16)


@pytest.mark.parametrize("chip", CHIPS)
def test_every_perfworks_name_is_understood(chip: str, planner: Planners) -> None:
    """The grammar takes all names of the library, and guesses the type of a base name right for nearly all."""
    wrong = total = 0
    suffix = {"counter": ".sum", "ratio": ".ratio", "throughput": ".avg.pct_of_peak_sustained_elapsed"}
    for kind, first in suffix.items():
        for base in planner(chip).base_metrics(kind):
            parts = split_name(base)
            assert parts is not None and not parts.rollup, base
            total += 1
            wrong += first not in parts.rollups
        for rollup in planner(chip).sub_metrics(base):
            parts = split_name(base + rollup)
            assert parts is not None and parts.rollup == rollup
    assert total > 1500 and wrong <= total // 200


def test_errors_that_the_library_helps_with(library: _core.CuptiLibrary, planner: Planners) -> None:
    def error(name: str, chip: str) -> str:
        with pytest.raises(MetricError) as e:
            metrics.resolve(
                name,
                chip,
                describe=planner(chip).properties,
                chips_with=lambda n: _core.chips_with_metric(library, n),
            )
        return str(e.value)

    assert "dram__bytes_op_read.sum" in error("dram__bytes_read.sum", "GB202")
    assert "Chips that have it: GV100" in error("dram__bytes_read.sum", "GB202")
    assert "sm__warps_active.sum sm__warps_active.avg sm__warps_active.min" in error("sm__warps_active", "GH100")
    assert "sm__warps_active has no roll-up .ratio" in error("sm__warps_active.ratio", "GH100")
    assert "sm__warps_active.avg" in error("sm__warps_activ.avg", "GH100")
    (metric,) = metrics.resolve("dram__bytes.sum.per_second", "GH100", describe=planner("GH100").properties)
    assert (metric.unit, metric.kind) == ("byte/s", "throughput") and "DRAM" in metric.description
