"""Where a result differs from what its program noted: launch by launch, and in sum."""

from __future__ import annotations

import dataclasses
from typing import Any

from cuptiprof.data.result import Result
from torch_programs.running import Ran

_TABLES = ("kernels", "memcpys", "memsets")
COLUMNS = {"": ("region", "step"), "operators": ("operator", "backward"), "modules": ("module",)}
"""Source -> the columns it fills; regions and steps are always known."""


def columns(sources: list[str]) -> list[str]:
    """Those that a session with these sources fills."""
    return [column for source in ("", *sources) for column in COLUMNS[source]]


def differences(ran: Ran, names: list[str]) -> list[str]:
    """Each launch of which a column of `names` says something else than the program did; and what does not add up."""
    truths: dict[int, list[dict[str, Any]]] = {}
    for number, launch in enumerate(ran.launches):
        path = ran.paths.get(number)
        truth = {**vars(launch), "backward": int(launch.backward)}
        if path is not None:
            truth["operator"] = "/".join(name.replace("\\", "\\\\").replace("/", "\\/") for name in path)
        truths.setdefault(launch.thread, []).append(truth)
    said = [f"losses: {name} {count}" for name, count in ran.result.losses.items() if count]
    rows_of = rows_by_thread(ran.result, names)
    for thread in sorted({*truths, *rows_of}):
        rows, of_thread = rows_of.get(thread, []), truths.get(thread, [])
        if [row["table"] for row in rows] != [truth["table"] for truth in of_thread]:
            said.append(f"thread {thread}: {len(rows)} rows of {len(of_thread)} launches")
            continue
        for row, truth in zip(rows, of_thread, strict=True):
            if not ran.paths and "operator" in row:  # the last part is all that is known
                row["operator"] = row["operator"].rpartition("/")[2]
            wrong = {name: row[name] for name in names if row[name] != truth[name]}
            if wrong:
                said.append(f"{wrong} instead of {truth}")
    return said


def rows_by_thread(result: Result, names: list[str]) -> dict[int, list[dict[str, Any]]]:
    """The launches of each thread, in their order."""
    threads: dict[int, list[dict[str, Any]]] = {}
    for table in _TABLES:
        rows = getattr(result, table)
        values = {name: rows[name].tolist() for name in (*names, "thread", "correlation_id")}
        for i in range(len(rows)):
            row = {name: column[i] for name, column in values.items()} | {"table": table}
            threads.setdefault(row["thread"], []).append(row)
    for of_thread in threads.values():
        of_thread.sort(key=lambda row: row["correlation_id"])
    return threads


def lies_found(ran: Ran, names: list[str]) -> list[str]:
    """The lies that :func:`differences` does not find: one launch that is another's in one column, and one that is missing."""
    last, number = ran.launches[-1], len(ran.launches) - 1
    others = {
        "region": "another",
        "module": "another",
        "operator": "aten::another",
        "step": 77,
        "backward": not last.backward,
    }
    missed: list[str] = []
    for name in names:
        paths = {**ran.paths, number: ("aten::another",)} if name == "operator" and ran.paths else ran.paths
        lie = dataclasses.replace(ran, launches=[*ran.launches[:-1], last.but(name, others[name])], paths=paths)
        said = differences(lie, names)
        if len(said) != 1 or not said[0].startswith(f"{{{name!r}:"):
            missed.append(f"{name}: {said}")
    if not any("launches" in line for line in differences(dataclasses.replace(ran, launches=ran.launches[1:]), names)):
        missed.append("a launch less")
    return missed
