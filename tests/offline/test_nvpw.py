"""Planning with libnvperf alone, as from CUDA 13.2 on without a driver, against CUPTI's own planning in 13.0."""

from __future__ import annotations

import random
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cuptiprof import _core
from cuptiprof.device.planning import plan_cache_dir, planning_library, version_number
from cuptiprof.errors import CuptiError, DeviceError, MetricError

pytest_plugins = ["nvidia_libraries"]

KINDS = {"counter": ".sum", "ratio": ".ratio", "throughput": ".avg.pct_of_peak_sustained_elapsed"}
BASIC = [
    "dram__bytes_read.sum",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__inst_executed.avg.per_cycle_active",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
]
CACHES = [*BASIC, "l1tex__t_sector_hit_rate.pct", "lts__t_sector_hit_rate.pct", "sm__inst_executed_pipe_tensor.sum"]
SASS = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"


@pytest.fixture(scope="module")
def cupti(cupti_13_0: str) -> _core.CuptiLibrary:
    return _core.load_cupti(cupti_13_0, "test")


@pytest.fixture(scope="module")
def nvperf(cupti_13_0: str) -> _core.CuptiLibrary:
    """The same release by the other way."""
    return _core.planning_library(cupti_13_0, 130000)


@pytest.fixture(scope="session")
def cupti_13_5(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("cupti-13.5-whole")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check"]
    subprocess.run(
        [*command, "--only-binary=:all:", "-d", str(folder), "nvidia-cuda-cupti==13.5.*"], check=True, timeout=240
    )
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
        wanted = [n for n in archive.namelist() if "libcupti.so" in n or "libnvperf" in n or n.endswith("/RECORD")]
        archive.extractall(folder, wanted)
    return str(next(folder.glob("**/libcupti.so.13")))


def outcome(planner: _core.MetricPlanner, metrics: list[str]) -> list[tuple[list[str], int]] | str:
    try:
        return [(g.metrics, g.passes) for g in planner.plan(metrics)]
    except MetricError as e:
        return e.message


@pytest.mark.parametrize("sampling", [False, True], ids=["range", "sampling"])
@pytest.mark.parametrize("chip", ["TU102", "GA100", "AD102", "GH100", "GB100"])
def test_the_same_as_cupti(cupti: _core.CuptiLibrary, nvperf: _core.CuptiLibrary, chip: str, sampling: bool) -> None:
    ours, theirs = _core.MetricPlanner(nvperf, chip, sampling), _core.MetricPlanner(cupti, chip, sampling)
    pick = random.Random(chip)
    for kind, plain in KINDS.items():
        names = theirs.base_metrics(kind)
        assert sorted(names) == sorted(ours.base_metrics(kind))
        for name in pick.sample(names, min(60, len(names))):
            subs = theirs.sub_metrics(name)
            assert ours.sub_metrics(name) == subs
            for full in (name, name + plain, name + pick.choice(subs), name + ".nonsense"):
                assert ours.properties(full) == theirs.properties(full), full
            if not name.startswith("pda__") and "ctc__throughput" not in name:  # CUPTI cannot collect those
                assert outcome(ours, [name + plain]) == outcome(theirs, [name + plain])
    for bad in ("nonsense.sum", "sm__cycles_active", ""):
        assert outcome(ours, [*BASIC, bad]) == outcome(theirs, [*BASIC, bad])


@pytest.mark.parametrize("chip", ["TU102", "GA100", "AD102", "GH100", "GB100"])
def test_passes_and_configurations_of_sets(cupti: _core.CuptiLibrary, nvperf: _core.CuptiLibrary, chip: str) -> None:
    pcie = ["pcie__read_bytes.sum", "pcie__write_bytes.sum"]
    ours, theirs = _core.MetricPlanner(nvperf, chip), _core.MetricPlanner(cupti, chip)
    for metrics in (BASIC, CACHES, [*CACHES, SASS], [*BASIC, *pcie], pcie, [*pcie, "gpu__time_duration.sum"]):
        assert outcome(ours, metrics) == outcome(theirs, metrics)
    ours, theirs = _core.MetricPlanner(nvperf, chip, sampling=True), _core.MetricPlanner(cupti, chip, sampling=True)
    for metrics in (BASIC, [*BASIC, SASS], [*BASIC, *pcie]):
        assert outcome(ours, metrics) == outcome(theirs, metrics)


def test_larger_sets_are_scheduled_nearly_alike(cupti: _core.CuptiLibrary, nvperf: _core.CuptiLibrary) -> None:
    """CUPTI has another scheduler than the documented one: most sets agree, the others by one or two passes."""
    ours, theirs = _core.MetricPlanner(nvperf, "GH100"), _core.MetricPlanner(cupti, "GH100")
    names = [n + ".sum" for n in theirs.base_metrics("counter")]
    pick = random.Random(0)
    differences = []
    for _ in range(100):
        metrics = pick.sample(names, 12)
        a, b = ours.plan(metrics), theirs.plan(metrics)
        assert [g.metrics for g in a] == [g.metrics for g in b]
        differences.append(abs(sum(g.passes for g in a) - sum(g.passes for g in b)))
    assert max(differences) <= 2 and sum(d > 0 for d in differences) <= 25


def test_13_5_without_a_driver(cupti_13_5: str, no_driver: None) -> None:
    with pytest.raises(DeviceError, match="needs one"):
        _core.load_cupti(cupti_13_5, "test")
    # In a process of its own: here the libnvperf of 13.0 is loaded, and the two do not go together.
    code = """if True:
        import sys
        from cuptiprof import _core
        from cuptiprof.device.planning import planning_library
        library = planning_library(sys.argv[1])
        basic, caches, sass = sys.argv[2].split(), sys.argv[3].split(), sys.argv[4]
        print(library.version, library.cuda_version, library.driver_version)
        print({"GH100", "GB100", "GB202"} <= set(_core.metric_chips(library)))
        kernel, sampled = (_core.MetricPlanner(library, "GH100", s) for s in (False, True))
        for planner, metrics in ((kernel, basic), (kernel, caches), (kernel, [*caches, sass]), (sampled, basic), (sampled, caches)):
            print([g.passes for g in planner.plan(metrics)])
        print([g.metrics for g in kernel.plan([basic[0], "pcie__read_bytes.sum"])])
        print(len(kernel.one_pass_groups([m for m in caches if "hit_rate" not in m])))
        print(kernel.properties("l1tex__t_sector_hit_rate.pct")["unit"])
    """
    args = [cupti_13_5, " ".join(BASIC), " ".join(CACHES), SASS]
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "130500 13.5 0",
        "True",
        *("[1]", "[2]", "[3]", "[1]", "[4]"),
        "[['dram__bytes_read.sum'], ['pcie__read_bytes.sum']]",
        "1",
        "percent",
    ]


def test_a_library_for_planning_refuses_everything_else(nvperf: _core.CuptiLibrary) -> None:
    assert not nvperf.simulated and nvperf.found_by == "for planning only"
    for call in (nvperf.timestamp, nvperf.dropped_records, nvperf.try_subscribe):
        with pytest.raises(CuptiError) as e:
            call()
        assert e.value.code == 999 and "no NVIDIA driver" in e.value.hint
    assert nvperf.callback_name(1, 307) == "" and not any(f["works"] for f in nvperf.features()[:5])
    with pytest.raises(DeviceError, match="cannot be evaluated"):
        _core.MetricPlanner(nvperf, "GH100").evaluate(b"x", 0, BASIC)
    with pytest.raises(MetricError, match="knows no chip"):
        _core.MetricPlanner(nvperf, "gh100").plan(BASIC)
    for path in ("/no/such/file", "a\0b"):
        with pytest.raises(DeviceError, match="there is no"):
            _core.planning_library(path)


def test_two_releases_of_nvperf_do_not_mix(cupti: _core.CuptiLibrary, cupti_13_5: str) -> None:
    assert _core.metric_chips(cupti)
    with pytest.raises(DeviceError, match="is loaded already") as e:
        _core.metric_chips(_core.planning_library(cupti_13_5))
    assert "CUPTIPROF_CUPTI" in e.value.hint


def test_which_library_plans(cupti_13_0: str, no_driver: None) -> None:
    library = planning_library(cupti_13_0)
    assert library.version > 130000 and library.timestamp() > 0


@pytest.mark.parametrize(
    ("release", "number"), [("13.5", 130500), ("13.4 or newer", 130400), ("12.6", 120600), ("", 0), ("new", 0)]
)
def test_version_numbers(release: str, number: int) -> None:
    assert version_number(release) == number


def test_where_plans_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert plan_cache_dir() == str(tmp_path / "cuptiprof/plans")
    monkeypatch.setenv("HOME", "/home/someone")
    for unset in ("", "relative/folder"):
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert plan_cache_dir() == "/home/someone/.cache/cuptiprof/plans"
