"""One trace of several ranks: what each of them had, by one clock; ranks that have no common clock are not merged."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from perfetto_trace import Trace, fields
from report_results import training_step

import cuptiprof
from benchmarks.generated_job import GeneratedJob
from cuptiprof.cli import main
from cuptiprof.data.result import Result

RANKS, STEPS = 8, 12
CHOSEN = [0, 3, 4, 5]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hosts; clocks that are up to 5 ms apart and drift."""
    folder = tmp_path_factory.mktemp("jobs") / "job"
    random = np.random.default_rng(4)
    offset, drift = random.uniform(-5e6, 5e6, RANKS), random.uniform(-5e-5, 5e-5, RANKS)
    GeneratedJob(ranks=RANKS, per_host=4, steps=STEPS, offset_ns=offset, drift=drift, seed=2).save(folder)
    return folder


@pytest.fixture(scope="module")
def files(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("traces")
    for name in ("t.json", "t.pftrace"):
        assert main(["job", str(folder), "--export", str(out / name), "--ranks", "0,3-5", "--steps", "4-6"]) == 0
    return out


@pytest.fixture(scope="module")
def trace(files: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((files / "t.json").read_text())
    return loaded


def rank_of(event: dict[str, Any]) -> int:
    return int(event["pid"]) // 1000 - 1


def test_every_rank_has_what_it_had(folder: Path, trace: dict[str, Any]) -> None:
    slices = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert all((e["pid"] % 1000 == 1) == (e["cat"] == "kernel") for e in slices)  # its GPU 0, and the process
    job = cuptiprof.open_job(folder)
    for rank in CHOSEN:
        of_run = job.rank(rank)
        inside = (of_run.kernels["step"] >= 5) & (of_run.kernels["step"] <= 7)
        mine = [e for e in slices if rank_of(e) == rank]
        names = Counter(e["name"] for e in mine if e["cat"] == "kernel")
        assert names == Counter(of_run.kernels["name"][inside].tolist())
        longest = np.sort((of_run.kernels["end"] - of_run.kernels["start"])[inside])
        shown = np.sort([round(1000 * e["dur"]) for e in mine if e["cat"] == "kernel"])
        assert np.abs(longest - shown).max() <= 20  # 50 ppm of 0.4 ms
        steps = sorted(e["name"] for e in mine if e["name"].startswith("ProfilerStep"))
        assert steps == ["ProfilerStep#4", "ProfilerStep#5", "ProfilerStep#6"]
        assert sum(e["name"] == "record_param_comms" for e in mine) == 6
    assert {rank_of(e) for e in slices} == set(CHOSEN)
    named = {e["pid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}
    assert named[1000] == named[1001] == "rank 0 (node000)" and named[5000] == "rank 4 (node001)"


def test_ends_of_collectives_agree_to_the_residual(folder: Path, trace: dict[str, Any], tmp_path: Path) -> None:
    said = trace["clocks"]
    assert said["reference"] in range(RANKS) and set(said["ranks"]) == {str(rank) for rank in CHOSEN}
    residual = said["residual_ns"]
    assert residual == max(of["residual_ns"] for of in said["ranks"].values()) and 0 < residual < 5_000
    main(["job", str(folder), "--export", str(tmp_path / "all.json")])
    everything = json.loads((tmp_path / "all.json").read_text())
    ends: dict[int, list[float]] = defaultdict(list)
    for e in everything["traceEvents"]:
        if e["ph"] == "X" and e["cat"] == "kernel" and "nccl" in e["name"]:
            ends[rank_of(e)].append(1000 * (e["ts"] + e["dur"]))
    # Of each step the first is of the host, the second of the ranks at the same place of both hosts.
    times = np.array([np.sort(ends[rank]) for rank in range(RANKS)]).reshape(2, 4, STEPS, 2)
    off = np.stack(
        [
            times[..., 0] - np.median(times[..., 0], axis=1, keepdims=True),
            times[..., 1] - np.median(times[..., 1], axis=0, keepdims=True),
        ]
    )
    shown = np.median(np.abs(off).transpose(1, 2, 0, 3).reshape(RANKS, 2 * STEPS), axis=1)
    told = [everything["clocks"]["ranks"][str(rank)]["residual_ns"] for rank in range(RANKS)]
    assert np.abs(shown - told).max() <= 2  # whole ns
    own = [cuptiprof.open_job(folder).rank(rank).kernels for rank in (4, 5)]
    apart = np.abs(np.subtract(*(np.sort(k["end"][k["collective"] > 0])[::2] for k in own)))
    assert np.median(apart) > 100_000  # as they were


def test_perfetto_has_the_same(files: Path, trace: dict[str, Any]) -> None:
    perfetto = Trace(None, files)
    processes = {}
    for number, track in perfetto.tracks.items():
        if 3 in track:
            process = dict(fields(track[3][0]))
            processes[number] = process[6].decode()
            assert "residual" in process[8].decode()
    assert sorted(processes.values()) == [f"rank {r} (node{r // 4:03d}) (simulated)" for r in CHOSEN]
    assert perfetto.base == trace["baseTimeNanoseconds"]
    ours = sorted((s["start"], s["end"], s["name"]) for s in perfetto.of("kernel"))
    theirs = [
        (round(1000 * e["ts"]), round(1000 * (e["ts"] + e["dur"])), e["name"])
        for e in trace["traceEvents"]
        if e["ph"] == "X" and e["cat"] == "kernel"
    ]
    assert ours == sorted(theirs)


def test_arrows_lead_through_the_collectives(files: Path, trace: dict[str, Any]) -> None:
    """In each step the all-reduce of ranks 4 and 5 on a host; of ranks 0 and 4 at the same place of both."""
    arrows = defaultdict(list)
    for e in trace["traceEvents"]:
        if e.get("cat") == "collective" and e["ph"] in "stf":
            arrows[e["id"]].append((e["ts"], e["ph"], rank_of(e)))
    found = Counter(tuple(sorted(rank for _, _, rank in each)) for each in arrows.values())
    assert found == {(0, 3): 3, (4, 5): 3, (0, 4): 3}
    assert all([phase for _, phase, _ in sorted(each)] == ["s", "f"] for each in arrows.values())
    flows = Counter(flow for s in Trace(None, files).slices for flow in s["flows"])
    assert len(flows) == 9 and set(flows.values()) == {2}


def test_all_ranks_and_one(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", str(folder), "--export", str(tmp_path / "all.json.gz")]) == 0
    said = capsys.readouterr().err
    assert "ranks 0-7, 960 kernels; ends of collectives agree to" in said and "left out" not in said
    assert main(["job", str(folder), "--export", str(tmp_path / "one.json"), "--ranks", "6"]) == 0
    assert "rank 6, 120 kernels\n" in capsys.readouterr().err
    kernels = cuptiprof.open_job(folder).rank(6).kernels
    one = json.loads((tmp_path / "one.json").read_text())
    starts = sorted(round(1000 * e["ts"]) for e in one["traceEvents"] if e.get("cat") == "kernel")
    assert starts == sorted(kernels["start"].tolist())  # on its own clock
    assert one["clocks"]["residual_ns"] is None


def test_ranks_without_a_clock_are_not_merged(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rank in range(RANKS):
        result = cuptiprof.open_job(folder).rank(rank)
        if rank == 2:
            result = Result({n: t for n, t in result.tables.items() if n != "collectives"}, result.metadata)
        result.save_rank(tmp_path / "job")
    job, out = str(tmp_path / "job"), str(tmp_path / "t.json")
    assert main(["job", job, "--export", out, "--ranks", "1-2"]) == 1
    said = capsys.readouterr().err
    assert "rank 2 cannot be shown beside others" in said and "leave such ranks out" in said
    assert not (tmp_path / "t.json").exists()
    assert main(["job", job, "--export", out]) == 0
    assert (
        "ranks 0, 1, 3-7, 840 kernels" in (said := capsys.readouterr().err)
        and "not aligned, and left out: rank 2" in said
    )
    assert 2 in json.loads((tmp_path / "t.json").read_text())["clocks"]["unaligned"]
    for rank in range(2):
        result = training_step()
        result.metadata |= {"rank": rank, "distributed": {"rank": rank, "world_size": 2}}
        result.save_rank(tmp_path / "other")
    assert main(["job", str(tmp_path / "other"), "--export", str(tmp_path / "o.json")]) == 1
    assert "ranks 0, 1 cannot be shown beside others" in capsys.readouterr().err
    for name in ("t.json", "t.pftrace"):
        assert main(["job", str(tmp_path / "other"), "--export", str(tmp_path / "other" / name), "--ranks", "1"]) == 0
    calls, alone = training_step().api_calls, Trace(None, tmp_path / "other")
    shown = [e for e in json.loads((tmp_path / "other" / "t.json").read_text())["traceEvents"] if e["ph"] == "X"]
    assert {e["pid"] for e in shown} == {2000, 2001}
    for found in (alone.slices, [{"category": e["cat"]} for e in shown]):
        assert sum(s["category"].startswith("cuda_") and s["category"] != "cuda_sync" for s in found) == len(calls) > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--export", "t.csv"], "csv has no place for several ranks"),
        (["--export", "t.json", "--ranks", "3,77"], "rank 77: no run"),
        (["--export", "t.json", "--steps", "99"], "rank 0 has no step 99\n  hint: its steps are 0 to 11"),
        (["--ranks", "3"], "--ranks, --steps and -f are of --export"),
    ],
)
def test_what_is_refused(
    words: list[str], said: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["job", str(folder), *words]) == 1
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", [["--ranks", "5-3"], ["--ranks", "0-99999999"], ["--ranks", "a"], ["--steps", "4-"]])
def test_what_is_no_range(option: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["job", str(folder), "--export", "t.json", *option])
    assert "such as" in capsys.readouterr().err
