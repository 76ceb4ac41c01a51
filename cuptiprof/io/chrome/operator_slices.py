"""PyTorch's operators as Kineto writes them (``cpu_op``), and the arrows from forward to backward."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import numpy as np

from cuptiprof.analysis.aggregate import Int64
from cuptiprof.analysis.host_tree import BACKWARD_SCOPE, USER_SCOPE
from cuptiprof.analysis.kernel_counters import match
from cuptiprof.data.codes import renumbered
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table
from cuptiprof.io.chrome.call_stack import CallStacks
from cuptiprof.io.chrome.gpu_slices import chunks
from cuptiprof.io.chrome.identity import Identity
from cuptiprof.io.chrome.json_text import microseconds, quoted_codes


def operator_events(result: Result, who: Identity, tid: Int64) -> Iterator[list[str]]:
    """One slice an operator; what the user named by record_function is an annotation."""
    table = result.tables["operators"]
    stacks = CallStacks(result)
    forward_thread = _forward_threads(table)
    for rows in chunks(len(table)):
        start = table["start"][rows]
        yield [
            f'{{"ph":"X","cat":"{"user_annotation" if scope == USER_SCOPE else "cpu_op"}","name":{name},"pid":{who.pid},'
            f'"tid":{row},"ts":{ts},"dur":{dur},"args":{{"External id":{instance}{_numbers(sequence, thread)}'
            f"{shapes}{dtypes}{module}{stack}}}}}"
            for name, scope, ts, dur, row, instance, sequence, thread, shapes, dtypes, module, stack in zip(
                quoted_codes(table.codes("name")[rows], table.strings),
                table["scope"][rows].tolist(),
                who.clock.ts(start),
                microseconds(table["end"][rows] - start),
                tid[rows].tolist(),
                table["instance"][rows].tolist(),
                table["sequence"][rows].tolist(),
                forward_thread[rows].tolist(),
                _lists(table, "shapes", "Input Dims", rows),
                _lists(table, "dtypes", "Input type", rows),
                _texts(table, "module", "Module", rows),
                stacks.texts(table, rows),
                strict=True,
            )
        ]


def forward_events(result: Result, who: Identity, tid: Int64) -> Iterator[list[str]]:
    """An arrow from each forward operator to the node of backward that it made."""
    table = result.tables["operators"]
    source = match(table["forward"], table["instance"])
    nodes = np.flatnonzero((table["scope"] == BACKWARD_SCOPE) & (table["forward"] > 0) & (source >= 0))
    for rows in chunks(len(nodes)):
        ends = zip(nodes[rows].tolist(), source[nodes[rows]].tolist(), strict=True)
        ts = who.clock.ts(table["start"][np.r_[nodes[rows], source[nodes[rows]]]])
        count = len(ts) // 2
        yield [
            text
            for i, (node, made) in enumerate(ends)
            for text in (
                f'{{"ph":"s","id":{rows.start + i + 1},"pid":{who.pid},"tid":{tid[made]},"ts":{ts[count + i]},'
                '"cat":"fwdbwd","name":"fwdbwd"}',
                f'{{"ph":"f","id":{rows.start + i + 1},"pid":{who.pid},"tid":{tid[node]},"ts":{ts[i]},'
                '"cat":"fwdbwd","name":"fwdbwd","bp":"e"}',
            )
        ]


def _forward_threads(table: Table) -> Array:
    """Torch's number (1, 2, ...) of the thread on which a node of backward was made; 0 for all other operators."""
    source = match(table["forward"], table["instance"])
    _, number = renumbered(table["thread"])
    known = (source >= 0) & (table["forward"] > 0)
    return np.where(known, number[source].astype(np.int64) + 1, 0) if len(table) else np.zeros(0, np.int64)


def _numbers(sequence: int, thread: int) -> str:
    return f',"Fwd thread id":{thread},"Sequence number":{sequence - 1}' if sequence else ""


def _lists(table: Table, column: str, key: str, rows: slice) -> list[str]:
    """A column of JSON lists as a member; nothing where there is none, or it is no list (a damaged file)."""

    def member(text: str) -> str:
        try:
            value = json.loads(text) if text else None
        except (ValueError, RecursionError):
            value = None
        return f',"{key}":{json.dumps(value)}' if isinstance(value, list) else ""

    return _by_code(table, column, rows, member)


def _texts(table: Table, column: str, key: str, rows: slice) -> list[str]:
    return _by_code(table, column, rows, lambda text: f',"{key}":{json.dumps(text)}' if text else "")


def _by_code(table: Table, column: str, rows: slice, member: Callable[[str], str]) -> list[str]:
    used, which = renumbered(table.codes(column)[rows])
    texts = [member(str(table.strings[code])) for code in used.tolist()]
    return [texts[i] for i in which.tolist()]
