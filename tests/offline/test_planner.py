"""Planning metrics with NVIDIA's own libcupti 13.0, which needs no GPU for it: passes, configurations, errors."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from cuptiprof import _core
from cuptiprof.device.plan_cache import CachedPlanner
from cuptiprof.errors import DeviceError, MetricError

pytest_plugins = ["nvidia_libraries"]

DRAM = ["dram__bytes_read.sum", "dram__bytes_write.sum", "dram__throughput.avg.pct_of_peak_sustained_elapsed"]
BASIC = ["sm__warps_active.avg.pct_of_peak_sustained_active", "sm__inst_executed.avg.per_cycle_active", *DRAM]
L1_HIT, L2_HIT = "l1tex__t_sector_hit_rate.pct", "lts__t_sector_hit_rate.pct"
TENSOR = [*BASIC, L1_HIT, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"]
CACHES = [*BASIC, L1_HIT, L2_HIT, "sm__inst_executed_pipe_tensor.sum"]
SASS = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"
PCIE, NVLINK = "pcie__read_bytes.sum", "nvlrx__bytes.sum"
# Made to be sampled together: one pass for all of them, by NVIDIA's choice of counters.
TRIAGE = [
    "TPC.TriageCompute.sm__cycles_active.avg",
    "TPC.TriageCompute.sm__inst_executed_realtime.sum",
    "TPC.TriageCompute.sm__inst_executed_pipe_alu_realtime.sum",
    "TPC.TriageCompute.sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed",
    "TPC.TriageCompute.tpc__warps_active_realtime.avg.pct_of_peak_sustained_elapsed",
    "SM_B.TriageCompute.l1tex__t_sectors.sum",
    "SM_B.TriageCompute.l1tex__t_sectors_lookup_hit.sum",
    "SM_B.TriageCompute.sm__ctas_active.sum",
    "LTS.TriageCompute.lts__average_t_sector_hit_rate_realtime.pct",
    "FBSP.TriageCompute.dramc__read_throughput.avg.pct_of_peak_sustained_elapsed",
    "FBSP.TriageCompute.dramc__write_throughput.avg.pct_of_peak_sustained_elapsed",
    "PCI.TriageCompute.pcie__read_bytes.sum",
    "PCI.TriageCompute.pcie__write_bytes.sum",
    "NVLRX.TriageCompute.nvlrx__bytes_packet_request_data_user.sum",
]


@pytest.fixture(scope="module")
def library(cupti_13_0: str) -> _core.CuptiLibrary:
    return _core.load_cupti(cupti_13_0, "test")


@pytest.fixture(scope="module")
def gh100(library: _core.CuptiLibrary) -> _core.MetricPlanner:
    return _core.MetricPlanner(library, "GH100")


@pytest.fixture(scope="module")
def sampling(library: _core.CuptiLibrary) -> _core.MetricPlanner:
    return _core.MetricPlanner(library, "GH100", sampling=True)


def passes(planner: _core.MetricPlanner, metrics: list[str]) -> list[int]:
    return [group.passes for group in planner.plan(metrics)]


def in_a_process(code: str, *args: str) -> str:
    """What Python prints: loading a library cannot be undone, so some tests need a process of their own."""
    head = "import sys; from cuptiprof import _core; from cuptiprof.errors import *\n"
    done = subprocess.run([sys.executable, "-c", head + code, *args], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


NVPERF = "nvperf = lambda: sorted({l.split()[-1] for l in open('/proc/self/maps') if 'libnvperf' in l})\n"


def test_nvperf_is_loaded_only_for_metrics_and_from_beside_libcupti(cupti_13_0: str, tmp_path: Path) -> None:
    """Not by importing, loading libcupti, making a planner, or a plan out of the cache."""
    code = NVPERF + (
        "from cuptiprof.device.plan_cache import CachedPlanner; library = _core.load_cupti(sys.argv[1], 'test')\n"
        "planner = CachedPlanner(library, 'GH100', cache_dir=sys.argv[2]); print('made', *nvperf())\n"
        "planner.plan(['sm__cycles_active.avg']); print('planned', *nvperf())\n"
        "planner.properties('sm__cycles_active.avg'); print('asked', *nvperf())\n"
        "_core.preload_nvperf(library); print('preloaded', *nvperf())"
    )
    folder = Path(cupti_13_0).resolve().parent
    host, target = (str(folder / f"libnvperf_{part}.so") for part in ("host", "target"))
    first = in_a_process(code, cupti_13_0, str(tmp_path)).splitlines()
    assert first == ["made", f"planned {host}", f"asked {host}", f"preloaded {host} {target}"]
    second = in_a_process(code, cupti_13_0, str(tmp_path)).splitlines()
    assert second == ["made", "planned", f"asked {host}", f"preloaded {host} {target}"]


def test_no_nvperf_beside_libcupti(cupti_13_0: str, tmp_path: Path) -> None:
    alone = shutil.copy(cupti_13_0, tmp_path)
    code = "try: _core.metric_chips(_core.load_cupti(sys.argv[1], 'test'))\nexcept DeviceError as e: print(e)"
    out = in_a_process(code, alone)
    assert f"cannot load {tmp_path}/libnvperf_host.so" in out and "pip install" in out


def test_another_nvperf_is_loaded_already(cupti_13_0: str, compile_library: Callable[[str, str], Path]) -> None:
    """libcupti looks it up by name and would take the wrong one; a copy of the right one will do."""
    other = compile_library("libnvperf_host.so", "int nothing;")
    folder = Path(cupti_13_0).parent
    code = (
        "import ctypes; ctypes.CDLL(sys.argv[2])\n"
        "try: print(len(_core.metric_chips(_core.load_cupti(sys.argv[1], 'test'))))\n"
        "except DeviceError as e: print(e)"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libnvperf_host.so", "-o", other, "-x", "c", "/dev/null"])
    out = in_a_process(code, cupti_13_0, str(other))
    assert f"{other} is loaded already" in out and "CUPTIPROF_CUPTI" in out
    same = shutil.copy(folder / "libnvperf_host.so", other.with_name("same.so"))
    assert int(in_a_process(code, cupti_13_0, str(same))) >= 30


def test_a_libcupti_before_12_6_cannot_plan(wheel: Callable[[str], str]) -> None:
    library = _core.load_cupti(wheel("12.4"), "test")
    with pytest.raises(DeviceError, match=r"older than CUDA 12\.6"):
        _core.metric_chips(library)


def test_chips(library: _core.CuptiLibrary) -> None:
    chips = _core.metric_chips(library)
    assert len(chips) == len(set(chips)) == 30
    assert {"GV100", "TU102", "GA100", "GA102", "AD102", "GH100", "GB100", "GB202"} <= set(chips)


@pytest.mark.parametrize("name", ["gh100", "GH200", "", "G\0H100", "x" * 10_000])
def test_unknown_chips(library: _core.CuptiLibrary, name: str) -> None:
    with pytest.raises(MetricError, match="knows no chip") as e:
        _core.MetricPlanner(library, name).plan(BASIC)
    assert "GH100" in e.value.hint and len(str(e.value)) < 1000
    if name == "gh100":
        assert 'did you mean "GH100"' in e.value.hint


def test_a_chip_without_sampling(library: _core.CuptiLibrary) -> None:
    with pytest.raises(MetricError, match="no PM sampling for GV100") as e:
        _core.MetricPlanner(library, "GV100", sampling=True).plan(BASIC)
    assert "by kernel" in e.value.hint


def test_what_a_chip_has(gh100: _core.MetricPlanner, sampling: _core.MetricPlanner) -> None:
    kinds = ("counter", "ratio", "throughput")
    assert [len(gh100.base_metrics(k)) for k in kinds] == [3389, 205, 56]
    assert sum(len(gh100.base_metrics(k)) for k in kinds) > 2 * sum(len(sampling.base_metrics(k)) for k in kinds)
    assert gh100.sub_metrics("l1tex__t_sector_hit_rate") == [".max_rate", ".pct", ".ratio"]
    assert gh100.sub_metrics("sm__cycles_active.avg") == gh100.sub_metrics("sm__cycles_active")
    assert gh100.sub_metrics("nonsense") == []
    with pytest.raises(ValueError, match="counter, ratio or throughput"):
        gh100.base_metrics("event")


def test_properties(gh100: _core.MetricPlanner) -> None:
    assert gh100.properties(L1_HIT) == {
        "description": "# of sector hits per sector",
        "unit": "percent",
        "hw_unit": "l1tex",
        "kind": "ratio",
    }
    for name in ("nonsense.avg", "", ".avg", "sm__cycles_active.nonsense", "sm__\0", "a b", "é", "x" * 100_000):
        assert gh100.properties(name) is None


@pytest.mark.parametrize(
    ("metrics", "by_range", "by_sampling"),
    [(BASIC, 1, 1), (TENSOR, 1, 3), (CACHES, 2, 4), ([L2_HIT], 2, 2), ([*CACHES, SASS], 3, None), (TRIAGE, None, 1)],
    ids=["basic", "tensor", "caches", "L2", "sass", "triage"],
)
def test_passes_on_gh100(
    gh100: _core.MetricPlanner,
    sampling: _core.MetricPlanner,
    metrics: list[str],
    by_range: int | None,
    by_sampling: int | None,
) -> None:
    if by_range is not None:
        assert passes(gh100, metrics) == [by_range]
    if by_sampling is not None:
        assert passes(sampling, metrics) == [by_sampling]


@pytest.mark.parametrize(
    ("chip", "by_range", "by_sampling"),
    [
        ("GA100", [1, 1, 2, 3], [1, 3, 4]),
        ("AD102", [1, 1, 2, 3], [1, 3, 3]),
        ("GB100", [1, 1, 2, 3], [1, 3, 3]),
        ("TU102", [2, 2, 2, 3], [2, 4, 4]),
    ],
)
def test_passes_elsewhere(library: _core.CuptiLibrary, chip: str, by_range: list[int], by_sampling: list[int]) -> None:
    sets = [BASIC, TENSOR, CACHES, [*CACHES, SASS]]
    assert [passes(_core.MetricPlanner(library, chip), s) for s in sets] == [[n] for n in by_range]
    sampled = _core.MetricPlanner(library, chip, sampling=True)
    assert [passes(sampled, s) for s in sets[:3]] == [[n] for n in by_sampling]


def test_no_metrics_no_groups(gh100: _core.MetricPlanner) -> None:
    assert gh100.plan([]) == [] and gh100.one_pass_groups([]) == []


@pytest.mark.parametrize(
    ("metric", "says", "hint"),
    [
        ("sm__cycle_active.avg", "GH100 has no metric sm__cycle_active.avg", "nearest are sm__cycles_active"),
        ("sm__cycles_active.mean", "GH100 has no metric sm__cycles_active.mean", "takes one of .avg"),
        ("sm__cycles_active", "needs a roll-up", "for example sm__cycles_active.avg"),
        ("smsp__inst_executed_pipe_fp16.sum", "GH100 has no metric", "exists on GV100, "),
        ("x" * 100_000, "GH100 has no metric xxx", "nearest"),
        ("", "GH100 has no metric", "nearest"),
    ],
)
def test_names_that_cannot_be_planned(gh100: _core.MetricPlanner, metric: str, says: str, hint: str) -> None:
    for plan in (gh100.plan, gh100.one_pass_groups):
        with pytest.raises(MetricError) as e:
            plan([*BASIC, metric])
        assert says in e.value.message and hint in e.value.hint and len(str(e.value)) < 1500
    assert passes(gh100, BASIC) == [1]  # and the next plan is none the worse


def test_a_metric_that_cannot_be_sampled(sampling: _core.MetricPlanner) -> None:
    with pytest.raises(MetricError, match="GH100 cannot sample smsp__sass") as e:
        sampling.plan([*BASIC, SASS])
    assert "by kernel or by range" in e.value.hint


def test_which_chips_have_a_metric(library: _core.CuptiLibrary) -> None:
    chips = _core.chips_with_metric(library, "dram__bytes_read.sum")
    assert "GH100" in chips and "GB202" not in chips
    assert _core.chips_with_metric(library, SASS, sampling=True) == []


def test_what_cannot_coexist_is_split(gh100: _core.MetricPlanner, sampling: _core.MetricPlanner) -> None:
    mixed = [PCIE, *BASIC, NVLINK]
    groups = gh100.plan(mixed)
    assert [g.metrics for g in groups] == [sorted(BASIC), sorted([PCIE, NVLINK])]
    assert [g.passes for g in groups] == [1, 1]
    assert [g.image for g in groups] == [gh100.plan(BASIC)[0].image, gh100.plan([PCIE, NVLINK])[0].image]
    assert len(sampling.plan(mixed)) == 1  # samplers of different parts run side by side


def test_one_pass_groups(gh100: _core.MetricPlanner, sampling: _core.MetricPlanner) -> None:
    hits = ["lts__t_sectors_lookup_hit.sum", "lts__t_sectors.sum"]
    stalls = [
        f"smsp__warps_issue_stalled_{s}.sum" for s in ("barrier", "wait", "sleeping", "membar", "math_pipe_throttle")
    ]
    pipes = [f"smsp__inst_executed_pipe_{p}.sum" for p in ("alu", "fma", "lsu", "tensor", "xu", "fp64", "uniform")]
    metrics = [*TENSOR, *hits, *stalls, *pipes, PCIE]
    for planner in (gh100, sampling):
        # A sampler lacks some, and has no second pass for others.
        metrics = [m for m in metrics if planner.properties(m) and passes(planner, [m]) == [1]]
        assert len(metrics) > 12
        groups = planner.one_pass_groups(metrics)
        assert sorted(m for g in groups for m in g.metrics) == sorted(metrics)
        assert {g.passes for g in groups} == {1}
        for g in groups:  # each is what planning it gives
            [alone] = planner.plan(g.metrics)
            assert (alone.passes, alone.image) == (1, g.image)
        for i, a in enumerate(groups):  # and none could take in another
            for b in groups[i + 1 :]:
                assert passes(planner, [*a.metrics, *b.metrics]) != [1]
        assert len(groups) <= sum(passes(planner, metrics)) + 1
        assert [g.metrics for g in planner.one_pass_groups(metrics[::-1])] == [g.metrics for g in groups]


def test_one_pass_is_one_group(gh100: _core.MetricPlanner) -> None:
    [group] = gh100.one_pass_groups(TENSOR)
    assert group.image == gh100.plan(TENSOR)[0].image


def test_what_needs_several_passes_by_itself_is_named(gh100: _core.MetricPlanner) -> None:
    with pytest.raises(MetricError, match=f"^{L2_HIT} needs several passes on GH100 by itself") as e:
        gh100.one_pass_groups([L1_HIT, L2_HIT, "sm__inst_executed.sum"])
    assert 'strategy="replay"' in e.value.hint
    with pytest.raises(MetricError, match=r"lts__t_sector_hit_rate\.pct, lts__t_sector_op_read_hit_rate\.pct need"):
        gh100.one_pass_groups([L2_HIT, "lts__t_sector_op_read_hit_rate.pct"])


def test_images_are_the_same_bytes_each_time(gh100: _core.MetricPlanner, cupti_13_0: str) -> None:
    """In any order, with doubles, and in another process: the cache rests on it."""
    image = gh100.plan(TENSOR)[0].image
    assert gh100.plan(TENSOR[::-1] * 2)[0].image == image
    code = (
        "import hashlib; planner = _core.MetricPlanner(_core.load_cupti(sys.argv[1], 'test'), 'GH100')\n"
        "print(hashlib.sha256(planner.plan(sys.argv[2:])[0].image).hexdigest())"
    )
    for order in (TENSOR, TENSOR[3:] + TENSOR[:3]):
        assert in_a_process(code, cupti_13_0, *order) == hashlib.sha256(image).hexdigest()


def test_memory_does_not_grow_with_plans(cupti_13_0: str) -> None:
    code = (
        "planner = _core.MetricPlanner(_core.load_cupti(sys.argv[1], 'test'), 'GH100')\n"
        "rss = lambda: int(open('/proc/self/statm').read().split()[1]) * 4096\n"
        "names = [b + '.sum' for b in planner.base_metrics('counter') if b.startswith(('sm__inst', 'smsp__warps'))]\n"
        "def run(first, count):\n"
        "    for i in range(first, first + count): planner.plan([names[i % len(names)], names[(3 * i + i // 90) % len(names)], names[7]])\n"
        "run(0, 100); before = rss(); run(100, 200); print(rss() - before)"
    )
    assert int(in_a_process(code, cupti_13_0)) < 4 << 20


def test_threads(library: _core.CuptiLibrary, gh100: _core.MetricPlanner) -> None:
    """Planners of their own, and one planner shared."""
    expected = {n: gh100.plan(BASIC[:n])[0].image for n in range(1, 6)}
    wrong: list[object] = []

    def work(seed: int) -> None:
        own = CachedPlanner(library, "GH100", cache_dir=f"/proc/no-such-folder-{seed}")
        for i in range(20):
            n = 1 + (seed + i) % 5
            for planner in (own, gh100):
                if planner.plan(BASIC[:n])[0].image != expected[n]:
                    wrong.append((seed, i))
            try:
                own.plan([f"nonsense_{seed}_{i}.sum"])
                wrong.append("no error")
            except MetricError:
                pass

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


@pytest.mark.parametrize("image", [b"", b"x", bytes(4096)])
def test_what_is_no_counter_data_is_an_error(gh100: _core.MetricPlanner, image: bytes) -> None:
    with pytest.raises(MetricError, match=f"an image of {len(image)} bytes has no values for range 3"):
        gh100.evaluate(image, 3, BASIC)
    assert gh100.evaluate(image, 0, []).shape == (0,)
