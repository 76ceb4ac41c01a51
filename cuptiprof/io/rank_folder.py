"""A folder with a run or a trace of each rank of a job: which there are, which are damaged, which are missing."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from cuptiprof.data.result import Progress, Result
from cuptiprof.errors import ResultError
from cuptiprof.io.remote import fetched
from cuptiprof.io.run_folder import RUN_FILE, runs_in
from cuptiprof.io.runs import open_run, traces_in
from cuptiprof.text.addresses import is_address, local_path, shown_path

_RANK = re.compile(r"rank[-_. =]?(\d{1,6})(?!\d)", re.IGNORECASE)
_LARGEST_JOB = 1_000_000
_NAMED = 8

Reading = Callable[[Path], AbstractContextManager[Progress | None]]
"""Told of each file before it is read; gives its progress callback."""


def open_ranks(path: str | os.PathLike[str], reading: Reading | None = None) -> list[Result]:
    """What is in a folder of saved runs or traces, by rank; of anything else, itself alone.

    A rank is what the run or the trace says it is; what says none gets the number after "rank" in its file's name, else the lowest that is free.
    What cannot be opened is left out, and ``metadata["note"]`` of the first says so, as it says which ranks of the job are missing or there twice.

    Raises:
        ResultError: there is no such file, or nothing in the folder can be opened.
    """
    if is_address(path):
        with fetched(os.fspath(path)) as copy:
            found = open_ranks(copy, reading)
        for result in found:
            if note := result.metadata.get("note"):
                result.metadata["note"] = str(note).replace(str(copy), shown_path(path))
        return found
    start = reading or (lambda _: nullcontext())
    folder = Path(local_path(path))
    files = _files(folder)
    results: list[tuple[Path, Result]] = []
    damaged: list[tuple[Path, ResultError]] = []
    for file in files:
        try:
            with start(file) as progress:
                results.append((file, open_run(file, progress)))
        except ResultError as e:
            if len(files) == 1:
                raise
            damaged.append((file, e))
    if not results:
        file, error = damaged[0]
        raise ResultError(f"{folder}: none of {len(damaged)} files could be opened; of {file.name}: {error}")
    if len(files) == 1:
        return [results[0][1]]
    _number(results)
    results.sort(key=lambda each: (_rank(each[1]), each[0].name))
    if notes := [*_damage(damaged), *_missing(results, len(damaged)), *_twice(results)]:
        first = results[0][1].metadata
        first["note"] = "; ".join(filter(None, [*notes, first.get("note")]))
    return [result for _, result in results]


def _files(folder: Path) -> list[Path]:
    if (folder / RUN_FILE).exists():
        return [folder]
    return runs_in(folder) or traces_in(folder) or [folder]


def _number(results: list[tuple[Path, Result]]) -> None:
    """Gives a rank to traces that say none: those of no distributed job."""
    unknown = [(file, result) for file, result in results if _is_unknown(result)]
    taken = {_rank(result) for _, result in results if not _is_unknown(result)}
    without = []
    for file, result in unknown:
        if found := _RANK.search(file.name):
            result.metadata["rank"] = int(found[1])
            taken.add(int(found[1]))
        else:
            without.append(result)
    free = (number for number in range(_LARGEST_JOB) if number not in taken)
    for result, number in zip(without, free, strict=False):
        result.metadata["rank"] = number


def _rank(result: Result) -> int:
    return int(result.metadata.get("rank") or 0)


def _is_unknown(result: Result) -> bool:
    """An import's rank is 0 for want of a distributed job. A run of ours without one is of a process that is no rank."""
    distributed = result.metadata.get("distributed")
    return "origin" in result.metadata and not (
        isinstance(distributed, dict) and isinstance(distributed.get("rank"), int)
    )


def _damage(damaged: list[tuple[Path, ResultError]]) -> list[str]:
    lines = [
        f"LEFT OUT: {error}" if str(file) in str(error) else f"LEFT OUT: {file}: {error}"
        for file, error in damaged[:_NAMED]
    ]
    return [*lines, *([f"and {len(damaged) - _NAMED} more files"] if len(damaged) > _NAMED else [])]


def _missing(results: list[tuple[Path, Result]], damaged: int) -> list[str]:
    sizes = [
        size
        for _, r in results
        if isinstance(d := r.metadata.get("distributed"), dict) and isinstance(size := d.get("world_size"), int)
    ]
    size = min(max(sizes, default=0), _LARGEST_JOB)
    found = {_rank(result) for _, result in results}
    missing = [rank for rank in range(size) if rank not in found]
    if not missing:
        return []
    named = ", ".join(map(str, missing[:_NAMED])) + (
        f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    )
    return [
        f"of {size} ranks {named} {'are' if len(missing) > 1 else 'is'} missing" + (" or damaged" if damaged else "")
    ]


def _twice(results: list[tuple[Path, Result]]) -> list[str]:
    by_rank: dict[int, list[str]] = defaultdict(list)
    for file, result in results:
        if "origin" in result.metadata:  # a run of ours may be of a process that is no rank
            by_rank[_rank(result)].append(file.name)
    return [
        f"{len(files)} files say that they are rank {rank}: {', '.join(files[:_NAMED])}"
        for rank, files in by_rank.items()
        if len(files) > 1
    ][:_NAMED]
