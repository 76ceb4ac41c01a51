"""The critical path: by hand, against a walk over programs of which each cause is known, and beside HTA's."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA, trace_path
from path_programs import NONE, Program, Wait, Work
from report_results import make_result

import cuptiprof
from cuptiprof.analysis.arrays.bisection import bisect
from cuptiprof.analysis.dependencies.critical_path import PathKind, critical_path
from cuptiprof.analysis.dependencies.host_waits import host_waits, launched
from cuptiprof.analysis.dependencies.path_gains import path_limits
from cuptiprof.analysis.dependencies.path_rows import OUTSIDE
from cuptiprof.analysis.dependencies.work_causes import work_causes
from cuptiprof.analysis.work.stream_work import stream_work
from cuptiprof.data.enums import SYNC_KINDS, code_of
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Strings, Table

Pieces = list[tuple[str, int, int]]


def kernel(name: str, start: int, end: int, correlation: int, stream: int = 7, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "start": start,
        "end": end,
        "correlation_id": correlation,
        "stream": stream,
        "thread": 70,
        **more,
    }


def call(name: str, start: int, end: int, correlation: int, thread: int = 70) -> dict[str, Any]:
    return {"name": name, "start": start, "end": end, "correlation_id": correlation, "thread": thread}


def pieces(result: Result) -> Pieces:
    path = critical_path(result)
    return [(PathKind(k).name, s, e) for k, s, e in zip(path.kind, path.start.tolist(), path.end.tolist(), strict=True)]


SYNC = {"type": code_of(SYNC_KINDS, "Stream Sync"), "stream": 7, "event": NONE}
TWO_KERNELS = {
    "kernels": [kernel("a", 30, 100, 1), kernel("b", 104, 200, 2)],
    "api_calls": [call("cudaLaunchKernel", 10, 20, 1), call("cudaLaunchKernel", 40, 45, 2), call("cudaStreamSynchronize", 50, 210, 3)],
    "synchronizations": [{**SYNC, "start": 50, "end": 205, "correlation_id": 3}],
    "operators": [
        {"name": "aten::mm", "start": 5, "end": 22, "instance": 1, "thread": 70},
        {"name": "aten::item", "start": 48, "end": 230, "instance": 2, "thread": 70},
    ],
    "regions": [{"name": "step", "path": "step", "start": 0, "end": 240, "instance": 1, "thread": 70}],
}  # fmt: skip


def test_through_the_gpu_and_back_by_hand() -> None:
    result = make_result(TWO_KERNELS)
    assert pieces(result) == [
        ("HOST", 0, 10), ("LAUNCH", 10, 30), ("WORK", 30, 100), ("GAP", 100, 104), ("WORK", 104, 200), ("SYNC", 200, 210),
        ("HOST", 210, 240),
    ]  # fmt: skip
    report = result.report("critical-path")
    found = [(row["kind"], row["name"], row["operator"], row["region"], row["time_ns"]) for row in report.rows]
    assert sorted(found, key=str) == sorted([
        ("kernel", "b", None, None, 96), ("kernel", "a", None, None, 70), ("launch", "a", None, None, 20), ("gap", "b", None, None, 4),
        ("sync", "cudaStreamSynchronize", None, None, 10), ("host", "aten::item", "aten::item", "step", 20),
        ("host", "step", None, "step", 15), ("host", "aten::mm", "aten::mm", "step", 5),
    ], key=str)  # fmt: skip
    assert sum(row["percent"] for row in report.rows) == pytest.approx(100)
    (facts,) = report.content.facts["paths"]
    assert (facts["total_ns"], facts["kernel_ns"], facts["host_ns"], facts["sync_ns"]) == (240, 166, 40, 10)
    assert "Rank 0: kernel 69.17%, host 16.67%, launch 8.33%, sync 4.17%, gap 1.67%." in str(report)


def test_a_call_that_found_the_gpu_done_did_not_wait() -> None:
    tables = TWO_KERNELS | {
        "api_calls": [*TWO_KERNELS["api_calls"][:2], call("cudaStreamSynchronize", 201, 210, 3)],
        "synchronizations": [{**SYNC, "start": 201, "end": 210, "correlation_id": 3}],
    }
    assert pieces(make_result(tables)) == [("HOST", 0, 240)]


def test_steps_cut_the_path() -> None:
    names = {"ProfilerStep#3": (0, 150), "ProfilerStep#4": (150, 240)}
    regions = [
        {"name": n, "path": n, "start": a, "end": b, "instance": i + 1, "thread": 70}
        for i, (n, (a, b)) in enumerate(names.items())
    ]
    result = make_result(TWO_KERNELS | {"regions": regions})
    found = result.report("critical-path-steps").rows
    assert [(row["step"], row["total_ns"]) for row in found] == [
        ("3", 200)
    ]  # with the work it launched; the last launched nothing
    assert (found[0]["kernel_ns"], found[0]["host_ns"], found[0]["launch_ns"], found[0]["gap_ns"]) == (166, 10, 20, 4)
    assert {row["region"] for row in result.report("critical-path").rows} == {None, "ProfilerStep#*"}


def test_backward_is_of_the_thread_that_called_it() -> None:
    tables = {
        "operators": [
            {"name": "aten::mm", "start": 0, "end": 10, "instance": 1, "thread": 70},
            {"name": "aten::mul", "start": 200, "end": 210, "instance": 2, "thread": 70},
            {"name": "autograd::engine::evaluate_function: MmBackward0", "start": 20, "end": 90, "instance": 3, "thread": 71, "backward": 1},
        ],
        "kernels": [kernel("forward", 8, 15, 1), kernel("backward", 40, 95, 2, thread=71), kernel("tail", 230, 250, 3)],
        "api_calls": [call("cudaLaunchKernel", 4, 6, 1), call("cudaLaunchKernel", 30, 35, 2, 71), call("cudaLaunchKernel", 204, 206, 3)],
    }  # fmt: skip
    result = make_result(tables)
    assert pieces(result) == [("HOST", 0, 204), ("LAUNCH", 204, 230), ("WORK", 230, 250)]
    host = {
        (row["name"], row["operator"]): row["time_ns"]
        for row in result.report("critical-path").rows
        if row["kind"] == "host"
    }
    evaluate = tables["operators"][2]["name"]
    assert host == {
        (OUTSIDE, None): 120,
        (evaluate, evaluate): 65,
        ("cudaLaunchKernel", evaluate): 5,
        ("aten::mm", "aten::mm"): 8,
        ("cudaLaunchKernel", "aten::mm"): 2,
        ("aten::mul", "aten::mul"): 4,
    }


def test_without_calls_what_ended_last_is_the_cause() -> None:
    tables = {"kernels": [kernel("a", 10, 50, 0), kernel("b", 60, 90, 0, stream=9), kernel("c", 30, 55, 0, stream=8)]}
    found = pieces(make_result(tables))
    assert found == [("UNKNOWN", 10, 30), ("WORK", 30, 55), ("GAP", 55, 60), ("WORK", 60, 90)]


def test_nodes_of_a_graph_come_one_after_the_other() -> None:
    tables = {
        "kernels": [
            kernel("first", 20, 50, 1), kernel("left", 52, 90, 1, stream=8), kernel("right", 53, 70, 1, stream=9), kernel("join", 93, 99, 1),
        ],
        "api_calls": [call("cudaGraphLaunch", 10, 15, 1)],
    }  # fmt: skip
    expected = [
        ("LAUNCH", 10, 20),
        ("WORK", 20, 50),
        ("GAP", 50, 52),
        ("WORK", 52, 90),
        ("GAP", 90, 93),
        ("WORK", 93, 99),
    ]
    assert pieces(make_result(tables)) == expected


def test_a_stream_that_waits_for_an_unknown_event() -> None:
    """A trace that does not say which record an event stands for: what ended last on the GPU before the work."""
    tables = {
        "kernels": [kernel("a", 20, 100, 1), kernel("b", 103, 150, 3, stream=9)],
        "api_calls": [call("cudaLaunchKernel", 10, 15, 1), call("cudaStreamWaitEvent", 20, 22, 2), call("cudaLaunchKernel", 24, 26, 3)],
        "synchronizations": [
            {"type": code_of(SYNC_KINDS, "Stream Wait Event"), "stream": 9, "event": NONE, "start": 20, "end": 22, "correlation_id": 2}
        ],
    }  # fmt: skip
    expected = [("LAUNCH", 10, 20), ("WORK", 20, 100), ("GAP", 100, 103), ("WORK", 103, 150)]
    assert pieces(make_result(tables)) == expected
    del tables["synchronizations"]
    assert pieces(make_result(tables)) == [("HOST", 10, 24), ("LAUNCH", 24, 103), ("WORK", 103, 150)]


@dataclass(frozen=True)
class Piece:
    kind: str
    start: int
    end: int
    of: Work | Wait | int  # what ran or began, what returned, or the thread


def walk(program: Program) -> list[Piece]:
    """The path of a program, thing by thing."""
    spans = thread_spans(program)
    first = min(spans, key=lambda t: (spans[t][0], t))
    begin = min([start for start, _ in spans.values()] + [w.start for w in program.works])
    out: list[Piece] = []

    def host(thread: int, until: int) -> Wait | None:
        """Back along a thread; the wait that ended it."""
        returned = [w for w in program.waits if w.thread == thread and w.end <= until]
        wait = max(returned, key=lambda w: w.end, default=None)
        if wait is None and thread != first:
            out.append(Piece("HOST", spans[thread][0], until, thread))
            return host(first, spans[thread][0])
        out.append(Piece("HOST", wait.end if wait else begin, until, thread))
        if wait:
            out.append(Piece("SYNC", wait.release, wait.end, wait))
        return wait

    last = max(program.works, key=lambda w: w.end)
    late = max(spans, key=lambda t: spans[t][1])
    work, until = (last, last.end) if last.end >= spans[late][1] else (None, 0)
    if work is None:
        wait = host(late, spans[late][1])
        work, until = (wait.work, wait.release) if wait else (None, 0)
    while work is not None:
        out.append(Piece("WORK", work.start, until, work))
        cause = work.before
        if work.event and (cause is None or work.event.end > cause.end):
            cause = work.event
        if cause and cause.end >= work.called:
            out.append(Piece("GAP", cause.end, work.start, work))
            work, until = cause, cause.end
        else:
            out.append(Piece("LAUNCH", work.called, work.start, work))
            wait = host(work.thread, work.called)
            work, until = (wait.work, wait.release) if wait else (None, 0)
    return [piece for piece in reversed(out) if piece.end > piece.start]


def thread_spans(program: Program) -> dict[int, tuple[int, int]]:
    calls = program.tables["api_calls"]
    threads = sorted({w.thread for w in program.works} | {w.thread for w in program.waits})
    mine = {t: [c for c in calls if c["thread"] == t] for t in threads}
    return {t: (min(c["start"] for c in of), max(c["end"] for c in of)) for t, of in mine.items()}


def without(program: Program, gone: Piece | None) -> int:
    """When the program ends if a piece of its path takes no time: what followed its cause follows it as long after."""
    spans = thread_spans(program)
    first = min(spans, key=lambda t: (spans[t][0], t))
    clock = {first: (spans[first][0], spans[first][0])}  # of each thread a moment, and when that is now
    ended: dict[int, int] = {}

    def at(thread: int, moment: int) -> int:
        old, new = clock[thread]
        saved = 0
        if gone and gone.kind == "HOST" and gone.of == thread:
            saved = max(min(moment, gone.end) - max(old, gone.start), 0)
        clock[thread] = moment, new + moment - old - saved
        return clock[thread][1]

    events: list[tuple[int, int, Any]] = [(w.called, 1, w) for w in program.works] + [
        (w.end, 0, w) for w in program.waits
    ]
    events += [(begin, -1, t) for t, (begin, _) in spans.items() if t != first]
    for moment, _, thing in sorted(events, key=lambda event: event[:2]):
        if isinstance(thing, int):
            clock[thing] = moment, at(first, moment)
        elif isinstance(thing, Work):
            causes = [(thing.called, at(thing.thread, moment))]
            causes += [(w.end, ended[id(w)]) for w in (thing.before, thing.event) if w]
            latency, lasts = thing.start - max(old for old, _ in causes), thing.end - thing.start
            if gone and gone.of is thing:
                latency, lasts = (latency, 0) if gone.kind == "WORK" else (0, lasts)
            ended[id(thing)] = max(new for _, new in causes) + latency + lasts
        else:
            back = 0 if gone and gone.of is thing else thing.end - thing.release
            clock[thing.thread] = moment, max(at(thing.thread, thing.start), ended[id(thing.work)]) + back
    return max([at(t, end) for t, (_, end) in spans.items()] + list(ended.values()))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("numbered", [True, False])
def test_programs_of_which_each_cause_is_known(threads: int, numbered: bool) -> None:
    kinds: set[str] = set()
    for seed in range(120):
        program = Program(seed, calls=10 + seed, threads=threads, numbered=numbered)
        if not program.works:
            continue
        expected = walk(program)
        result = program.result()
        path = critical_path(result)
        assert pieces(result) == [(piece.kind, piece.start, piece.end) for piece in expected], seed
        on_path = path.work[path.kind == PathKind.WORK]
        found = list(
            zip(path.graph.work.stream[path.graph.work.which[on_path]], path.graph.work.start[on_path], strict=True)
        )
        ran = [piece.of for piece in expected if piece.kind == "WORK" and isinstance(piece.of, Work)]
        assert found == [(work.stream, work.start) for work in ran], seed
        kinds |= {piece.kind for piece in expected}
        rows = result.report("critical-path").rows
        assert sum(row["time_ns"] for row in rows) == path.end[-1] - path.start[0]
    assert kinds == {"HOST", "LAUNCH", "WORK", "GAP", "SYNC"}


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_what_a_piece_can_save_at_most(threads: int) -> None:
    """Played again without the piece a program is shorter by no more than that, and mostly by just as much."""
    exact = total = 0
    for seed in range(60):
        program = Program(seed, calls=10 + seed, threads=threads)
        if not program.works:
            continue
        path = critical_path(program.result())
        limits, end = path_limits(path).tolist(), without(program, None)
        assert end == path.end[-1]
        for piece, limit in zip(walk(program), limits, strict=True):
            saved, most = end - without(program, piece), min(limit, piece.end - piece.start)
            assert 0 <= saved <= most, (seed, piece)
            exact, total = exact + (saved == most), total + 1
    assert total > 1000 and exact > 0.9 * total


# What HTA 0.5.0 finds: ns since the first thing in the trace between which its path goes, and time and pieces there of kernels (copies, sets)
# with the gaps between them, and of launches. It rounds starts up and ends down to whole microseconds; what they lose is a gap.
_OF_HTA = {
    "train-v100": (101_152_000, 196_887_000, 93_692_000 + 2_043_000, 1_219, 0),  # the second ProfilerStep
    "rank0": (2_899_000, 4_790_000, 1_765_000 + 40_000, 9, 11_000),  # the third
    "event-sync": (0, 10**12, 38_000, 2, 28_000),
    "event-sync-streams": (0, 10**12, 124_000 + 15_000, 2, 14_000),
}


@pytest.mark.parametrize("trace", _OF_HTA)
def test_same_work_as_hta_where_the_gpu_is_the_limit(trace: str) -> None:
    begin, end, gpu, count, launch = _OF_HTA[trace]
    file = DATA / "ranks" / f"{trace}.json.gz"
    result = cuptiprof.open(file if file.exists() else trace_path(trace)).timed()
    tables = [result.tables[n] for n in ("kernels", "memcpys", "memsets", "api_calls", "operators", "regions")]
    origin = min(int(table["start"].min()) for table in tables if len(table))
    path = critical_path(result)
    start, until = (np.clip(times - origin, begin, end) for times in (path.start, path.end))
    time = {kind: int((until - start)[path.kind == kind].sum()) for kind in PathKind}
    inside = (until > start) & (path.kind == PathKind.WORK)
    assert (time[PathKind.WORK] + time[PathKind.GAP], int(inside.sum()), time[PathKind.LAUNCH]) == (gpu, count, launch)


def test_pieces_follow_each_other(every_trace: Path) -> None:
    result = cuptiprof.open(every_trace).timed()
    path = critical_path(result)
    assert (path.start[1:] == path.end[:-1]).all() and (path.end > path.start).all()
    rows = result.report("critical-path").rows
    assert sum(row["time_ns"] for row in rows) == (int(path.end[-1] - path.start[0]) if len(path) else 0)


@pytest.fixture(
    params=sorted((DATA / "traces").glob("*.json.gz")) + sorted((DATA / "ranks").glob("*.json.gz")),
    ids=lambda p: p.name,
)
def every_trace(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_search_in_parts() -> None:
    rng = np.random.default_rng(3)
    edges = np.sort(np.r_[0, rng.integers(0, 200, 20), 200])
    values = np.concatenate([np.sort(rng.integers(0, 30, b - a)) for a, b in pairwise(edges)])
    part, wanted = rng.integers(0, len(edges) - 1, 500), rng.integers(-2, 33, 500)
    for side in ("left", "right"):
        found = bisect(values, edges[part], edges[part + 1], wanted, side)
        expected = [
            edges[p] + np.searchsorted(values[edges[p] : edges[p + 1]], w, side=side)
            for p, w in zip(part, wanted, strict=True)
        ]
        assert found.tolist() == expected


def test_each_gpu_is_waited_for_alone() -> None:
    """Streams of one number on two GPUs; the context of a wait says which."""
    tables = {
        "kernels": [kernel("a", 20, 100, 1, context=1), kernel("b", 30, 180, 2, device=1, context=2)],
        "api_calls": [
            call("cudaLaunchKernel", 10, 12, 1), call("cudaLaunchKernel", 14, 16, 2), call("cudaDeviceSynchronize", 20, 104, 3),
            call("cudaStreamSynchronize", 110, 190, 4),
        ],
        "synchronizations": [
            {"type": code_of(SYNC_KINDS, "Context Sync"), "stream": NONE, "event": NONE, "context": 1, "correlation_id": 3},
            {**SYNC, "context": 2, "correlation_id": 4},
        ],
    }  # fmt: skip
    result = make_result(tables)
    work = stream_work(result)
    waits = host_waits(result, work, launched(result, work))
    assert [(int(work.device[work.which[i]]), r) for i, r in zip(waits.work, waits.release.tolist(), strict=True)] == [
        (0, 100),
        (1, 180),
    ]
    for row in tables["synchronizations"]:
        row["context"] = 9  # nobody said of which GPU it is: what had ended by the return
    waits = host_waits(make_result(tables), work, launched(result, work))
    assert waits.release.tolist() == [100]


def test_as_many_threads_streams_and_gpus_as_there_are_kernels() -> None:
    """A file may say so; nothing is done once for each of them over all others."""
    n = 100_000
    which = np.arange(n)
    strings = Strings()
    code = {name: strings.code(name) for name in ("k", "cudaLaunchKernel", "cudaDeviceSynchronize")}
    start = which * 100
    kernels = {"start": start + 10, "end": start + 90, "name": np.full(n, code["k"]), "correlation_id": which + 1, "thread": which,
               "stream": which, "device": which % 50_000}  # fmt: skip
    calls = {
        "start": np.r_[start, start + 20], "end": np.r_[start + 5, start + 95], "thread": np.r_[which, which],
        "name": np.repeat([code["cudaLaunchKernel"], code["cudaDeviceSynchronize"]], n), "correlation_id": np.r_[which, which + n] + 1,
    }  # fmt: skip
    result = Result(
        {name: Table.from_columns(name, of, strings) for name, of in (("kernels", kernels), ("api_calls", calls))}
    )
    begin = time.thread_time()
    assert result.report("critical-path").rows
    assert time.thread_time() - begin < 20


def test_a_million_kernels_in_seconds() -> None:
    from test_analyses import many

    result = many(1_000_000)
    begin = time.thread_time()
    path = critical_path(result)
    assert len(path) > 100 and time.thread_time() - begin < 20


def test_a_trace_says_which_record_a_stream_waited_for() -> None:
    result = cuptiprof.open(trace_path("event-sync-streams"))
    recorded = sorted(
        zip(*(result.cuda_events[c].tolist() for c in ("correlation_id", "event", "stream")), strict=True)
    )
    assert recorded == [(32, 9, 20), (62, 9, 28), (1385, 19, 20)]
    work = stream_work(result.timed())
    causes = work_causes(result, work, launched(result, work))
    _, (source, _) = causes.others  # that before on the stream, that of an event
    waited = np.flatnonzero(source >= 0)
    streams = work.stream[work.which]
    assert list(zip(streams[source[waited]].tolist(), streams[waited].tolist(), strict=True)) == [(20, 24)]
    assert causes.by_launch[waited].all()  # it had ended long before


def test_a_record_that_is_known_is_no_guess(tmp_path: Path) -> None:
    """Of two streams that had work before, the trace names the one that ended first."""
    program = {
        "kernels": [kernel("a", 20, 60, 1), kernel("b", 30, 100, 2, stream=8), kernel("c", 103, 150, 5, stream=9)],
        "api_calls": [
            call("cudaLaunchKernel", 10, 12, 1), call("cudaLaunchKernel", 14, 16, 2), call("cudaEventRecord", 18, 19, 3),
            call("cudaStreamWaitEvent", 20, 22, 4), call("cudaLaunchKernel", 24, 26, 5),
        ],
        "synchronizations": [{"type": code_of(SYNC_KINDS, "Stream Wait Event"), "stream": 9, "event": 4, "event_sync_id": 77, "start": 20, "end": 22, "correlation_id": 4}],
        "cuda_events": [{"event": 4, "stream": 7, "event_sync_id": 77, "correlation_id": 3}],
    }  # fmt: skip
    result = make_result(program)
    file = tmp_path / "trace.json"
    result.export(file)
    expected = [("LAUNCH", 10, 20), ("WORK", 20, 60), ("GAP", 60, 103), ("WORK", 103, 150)]
    assert pieces(result) == expected
    again = pieces(cuptiprof.open(file).timed())
    assert [(kind, end - start) for kind, start, end in again] == [(kind, end - start) for kind, start, end in expected]
