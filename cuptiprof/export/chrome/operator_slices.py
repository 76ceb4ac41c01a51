"""PyTorch's operators as Kineto writes them (``cpu_op``), and the arrows from forward to backward."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.counter_values.kernel_counters import match
from cuptiprof.analysis.trees.host_tree import BACKWARD_SCOPE, USER_SCOPE
from cuptiprof.data.codes import renumbered
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table
from cuptiprof.export.chrome.call_stack import stack_members
from cuptiprof.export.chrome.collective_members import CollectiveSlices
from cuptiprof.export.chrome.identity import Identity
from cuptiprof.export.chrome.json_text import Events


def operator_events(result: Result, who: Identity, tid: Int64, collectives: CollectiveSlices) -> Iterator[Events]:
    """One slice an operator; what the user named by record_function is an annotation."""
    table = result.tables["operators"]
    start, sequence = table["start"], table["sequence"].astype(np.int64)
    events = Events(len(table))
    events.text(',\n{"ph":"X","cat":"', (table["scope"] == USER_SCOPE).astype(np.uint8), ["cpu_op", "user_annotation"])
    events.name('","name":', table.codes("name"), table.strings).number(f',"pid":{who.pid},"tid":', tid)
    events.time(',"ts":', who.clock.since(start)).time(',"dur":', table["end"] - start)
    events.number(',"args":{"External id":', table["instance"])
    events.number(',"Fwd thread id":', _forward_threads(table), sequence != 0)
    events.number(',"Sequence number":', sequence - 1, sequence != 0)
    events.text("", *_by_code(table, "shapes", lambda text: _list(text, "Input Dims")))
    events.text("", *_by_code(table, "dtypes", lambda text: _list(text, "Input type")))
    events.text("", *_by_code(table, "module", lambda text: f',"Module":{json.dumps(text)}' if text else ""))
    collectives.add_record(events, collectives.of_operators)
    yield events.text("", *stack_members(result, table)).same("}}")


def forward_events(result: Result, who: Identity, tid: Int64) -> Iterator[Events]:
    """An arrow from each forward operator to the node of backward that it made."""
    table = result.tables["operators"]
    source = match(table["forward"], table["instance"])
    nodes = np.flatnonzero((table["scope"] == BACKWARD_SCOPE) & (table["forward"] > 0) & (source >= 0))
    for phase, rows, more in (("s", source[nodes], ""), ("f", nodes, ',"bp":"e"')):
        events = Events(len(nodes)).number(f',\n{{"ph":"{phase}","id":', who.arrows(np.arange(1, len(nodes) + 1)))
        events.number(f',"pid":{who.pid},"tid":', tid[rows]).time(',"ts":', who.clock.since(table["start"][rows]))
        yield events.same(f',"cat":"fwdbwd","name":"fwdbwd"{more}}}')


def _forward_threads(table: Table) -> Int64:
    """Torch's number (1, 2, ...) of the thread on which a node of backward was made; 0 for all other operators."""
    source = match(table["forward"], table["instance"])
    _, number = renumbered(table["thread"])
    known = (source >= 0) & (table["forward"] > 0)
    return np.where(known, number[source].astype(np.int64) + 1, 0) if len(table) else np.zeros(0, np.int64)


def _list(text: str, key: str) -> str:
    """A JSON list as a member; nothing where there is none, or it is no list (a damaged file)."""
    try:
        value = json.loads(text) if text else None
    except (ValueError, RecursionError):
        value = None
    return f',"{key}":{json.dumps(value)}' if isinstance(value, list) else ""


def _by_code(table: Table, column: str, member: Callable[[str], str]) -> tuple[Array, list[str]]:
    used, which = renumbered(table.codes(column))
    return which, [member(str(table.strings[code])) for code in used.tolist()]
