"""Collectives that ranks do not do together, by dumps of PyTorch's flight recorder: who is missing, who does something else, what is waited in.

The rules are those of torch's own ``fr_trace`` (``torch/distributed/flight_recorder/components``: ``Op.match``, ``error_analysis``), but the ranks are
compared with what most of them do, not with the first one.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from cuptiprof.io.collective_dump import CollectiveDump, CollectiveEntry
from cuptiprof.job.rank_text import ranks_text
from cuptiprof.text.names import printable

_OWN = ("/torch/distributed/", "<string>")
_Group = tuple[str, str, frozenset[int]]  # name, description, ranks


@dataclass(frozen=True)
class StuckCollective:
    """The first collective of a group that its ranks do not do together, or wait in.

    Attributes:
        group: its description, or name. number: of the collective in it (``collective_seq_id``). operation: "all_reduce".
        problem: "missing" (ranks have not called it), "operation", "sizes", "dtypes" (they do something else), "state" (they have not come as far), "no dump"
            (nobody knows of them), "unfinished" (all are in it).
        ranks: of which that is so. waiting: the others in it.
        after: how many later collectives of the group are not common to all ranks either.
        time_ns: Unix time at which the first rank called it; 0: not known.
        where: the line of the program that called it, "train.py:12 step"; empty: not known.
        text: all of it, as a sentence.
    """

    group: str
    number: int
    operation: str
    problem: str
    ranks: tuple[int, ...]
    waiting: tuple[int, ...]
    after: int
    time_ns: int
    where: str
    text: str


def stuck_collectives(dumps: Sequence[CollectiveDump]) -> list[StuckCollective]:
    """At most one a group, the earliest first; empty: all ranks have done the same, and nothing is waited in.

    What the ring of any rank has lost already is not looked at. Sends and receives are not compared; a group whose ranks are not in
    the dumps (gloo) has those that called something in it, ``default_pg`` all.
    """
    there = frozenset(dump.rank for dump in dumps)
    groups: dict[_Group, dict[int, list[CollectiveEntry]]] = defaultdict(dict)
    for dump in dumps:
        by_name: dict[tuple[str, str], list[CollectiveEntry]] = defaultdict(list)
        for entry in dump.entries:
            if not entry.is_p2p:
                by_name[entry.process_group].append(entry)
        for (name, desc), entries in by_name.items():
            groups[name, desc, dump.members.get(name, frozenset())][dump.rank] = entries
    first_kept = {dump.rank: dump.entries[0].record_id if dump.entries else 0 for dump in dumps}
    found = []
    for (name, desc, members), by_rank in groups.items():
        expected = members or (there if desc == "default_pg" else frozenset(by_rank))
        stuck = _of_group(desc if desc not in ("", "undefined") else name, expected, there, by_rank, first_kept)
        if stuck is not None:
            found.append(stuck)
    return sorted(found, key=lambda one: (one.problem == "unfinished", one.time_ns, one.group))


def _of_group(
    name: str,
    expected: frozenset[int],
    there: frozenset[int],
    by_rank: dict[int, list[CollectiveEntry]],
    first_kept: dict[int, int],
) -> StuckCollective | None:
    numbered: dict[int, dict[int, list[CollectiveEntry]]] = defaultdict(dict)
    lost_until = 0
    for rank, entries in by_rank.items():
        if entries and first_kept[rank]:
            lost_until = max(lost_until, min(e.collective_seq_id for e in entries))
        for entry in entries:
            numbered[entry.collective_seq_id].setdefault(rank, []).append(entry)
    odd = []
    unfinished = None
    for number in sorted(number for number in numbered if number >= lost_until):
        calls = numbered[number]
        problem, ranks = _problem(calls, expected, there)
        if problem:
            odd.append((number, problem, ranks))
        elif unfinished is None and not all(e.is_done for entries in calls.values() for e in entries):
            unfinished = (number, "unfinished", frozenset(calls))
    if not odd and unfinished is None:
        return None
    number, problem, ranks = odd[0] if odd else unfinished or (0, "", frozenset())
    return _told(printable(name), number, problem, ranks, numbered[number], max(len(odd) - 1, 0))


def _problem(
    calls: dict[int, list[CollectiveEntry]], expected: frozenset[int], there: frozenset[int]
) -> tuple[str, frozenset[int]]:
    """What is wrong with one collective, and of which ranks; "": nothing."""
    missing = (expected - calls.keys()) & there
    if missing:
        return "missing", missing
    signatures = {rank: tuple(map(_signature, entries)) for rank, entries in calls.items()}
    counted = Counter(signatures.values())
    usual = max(counted, key=lambda s: (counted[s], -min(r for r in signatures if signatures[r] == s)))
    reference = next(calls[rank] for rank in sorted(calls) if signatures[rank] == usual)
    problems = {
        rank: problem for rank, entries in calls.items() if (problem := _difference(reference, entries, len(expected)))
    }
    if problems:
        first = min(problems.values(), key=_PROBLEMS.index)
        return first, frozenset(rank for rank, problem in problems.items() if problem == first)
    unknown = expected - there
    if unknown and not all(e.is_done for entries in calls.values() for e in entries):
        return "no dump", unknown
    return "", frozenset()


_PROBLEMS = ("operation", "sizes", "dtypes", "state")


def _signature(e: CollectiveEntry) -> tuple[object, ...]:
    return e.operation, e.input_sizes, e.output_sizes, e.input_dtypes, e.output_dtypes, e.state


def _difference(usual: list[CollectiveEntry], entries: list[CollectiveEntry], size: int) -> str:
    if len(usual) != len(entries):
        return "operation"
    return next((problem for a, b in zip(usual, entries, strict=True) if (problem := _mismatch(a, b, size))), "")


def _mismatch(a: CollectiveEntry, b: CollectiveEntry, size: int) -> str:
    """What torch's ``Op.match`` says of two collectives, of which `a` is as it should be; in groups of `size` ranks."""
    operation = a.operation
    if operation != b.operation:
        return "operation"
    if operation == "coalesced":
        return ""
    if (
        (operation not in ("all_to_all", "scatter") and a.input_sizes != b.input_sizes)
        or (operation not in ("all_to_all", "gather") and a.output_sizes != b.output_sizes)
        or (operation in ("all_reduce", "allreduce_coalesced") and b.input_sizes != b.output_sizes)
        or (operation in _GATHERS and _elements(b.output_sizes) != _elements(b.input_sizes) * size)
        or (operation in _SCATTERS and _elements(b.input_sizes) != _elements(b.output_sizes) * size)
    ):
        return "sizes"
    ins, outs = set(a.input_dtypes), set(a.output_dtypes)
    if (
        (operation not in ("scatter", "gather", "broadcast") and ins != outs and _some(a.input_sizes, a.output_sizes))
        or (operation not in ("scatter", "broadcast") and ins != set(b.input_dtypes) and _some(a.input_sizes, b.input_sizes))
        or (operation != "gather" and outs != set(b.output_dtypes) and _some(a.output_sizes, b.output_sizes))
    ):  # fmt: skip
        return "dtypes"
    return "state" if a.state != b.state else ""


_GATHERS = ("all_gather", "all_gather_base", "all_gather_into_tensor_coalesced")
_SCATTERS = ("reduce_scatter", "_reduce_scatter_base", "reduce_scatter_tensor_coalesced")


def _elements(sizes: tuple[tuple[int, ...], ...]) -> int:
    return math.prod(sizes[0]) if sizes else 0


def _some(*sizes: tuple[tuple[int, ...], ...]) -> bool:
    return all(of and of[0] for of in sizes)


def _told(
    group: str,
    number: int,
    problem: str,
    ranks: frozenset[int],
    calls: dict[int, list[CollectiveEntry]],
    after: int,
) -> StuckCollective:
    waiting = tuple(sorted(calls.keys() - ranks))
    of = calls[waiting[0]] if waiting else calls[min(calls)]
    usual = of[-1]
    operation = usual.operation
    what = f"{operation} #{number} of group {group}"
    one = len(ranks) == 1
    who = ranks_text(sorted(ranks))
    wait = f"; {ranks_text(waiting)} {'waits' if len(waiting) == 1 else 'wait'} in it" if waiting else ""
    other = calls[min(ranks)][-1] if ranks <= calls.keys() else usual
    text = {
        "missing": f"{who} never called {what}{wait}",
        "operation": f"{who} called {other.operation} where {ranks_text(waiting)} called {what}",
        "sizes": f"{who} called {what} with other sizes ({_shapes(other)}) than {ranks_text(waiting)} ({_shapes(usual)})",
        "dtypes": f"{who} called {what} with other types ({_types(other)}) than {ranks_text(waiting)} ({_types(usual)})",
        "state": f"{who} {'has' if one else 'have'} {what} {other.state}; {ranks_text(waiting)}: {usual.state}",
        "no dump": f"there is no dump of {who}; {ranks_text(waiting)} {'waits' if len(waiting) == 1 else 'wait'} in {what}",
        "unfinished": f"all ranks are in {what} ({usual.state})",
    }[problem]
    times = [e.time_created_ns for entries in calls.values() for e in entries if e.time_created_ns > 0]
    return StuckCollective(
        group, number, operation, problem, tuple(sorted(ranks)), waiting, after, min(times, default=0), _where(of), text
    )


def _shapes(entry: CollectiveEntry) -> str:
    return f"{[list(s) for s in entry.input_sizes[:3]]} to {[list(s) for s in entry.output_sizes[:3]]}"


def _types(entry: CollectiveEntry) -> str:
    return printable(", ".join((*entry.input_dtypes[:3], *entry.output_dtypes[:3])))


def _where(entries: Sequence[CollectiveEntry]) -> str:
    """The innermost frame outside of torch.distributed."""
    frames = next((e.frames for e in entries if e.frames), ())
    frame = next((f for f in frames if not any(own in f.filename for own in _OWN)), None)
    return printable(f"{frame.filename}:{frame.line} {frame.name}"[:300]) if frame is not None else ""
