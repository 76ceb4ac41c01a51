"""Calls of torch.distributed that communicate, followed while a session with the activity "collectives" runs.

The functions of ``torch.distributed`` are others inside, and themselves again after; torch is never imported here. What C++ starts by
itself (the gradients' all-reduce of DistributedDataParallel) does not pass here: of those the backend's own records tell
(:mod:`cuptiprof.session.collective_records`), or else operators (``c10d::...``).
"""

from __future__ import annotations

import functools
import inspect
import json
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NamedTuple

from cuptiprof import _core
from cuptiprof.regions.when_imported import WhenImported
from cuptiprof.session.collective_records import CollectiveRecord, outside_of, taken_records

_MODULE = "torch.distributed.distributed_c10d"
_BYTES_OF_A_CALL = 512
_SHARE = 64
"""of the budget: one in so many"""
_FEWEST = 1024


class GroupFacts(NamedTuple):
    """A process group as torch names it; `ranks` is JSON."""

    name: str
    description: str
    backend: str
    ranks: str
    size: int


class CollectiveCall(NamedTuple):
    """One call: times in ns on the run clock, sizes in bytes, `peer` a rank or -1, `sequence` -1 where it is unknown."""

    start: int
    end: int
    thread: int
    name: str
    group: GroupFacts
    dtype: str
    in_bytes: int
    out_bytes: int
    peer: int
    sequence: int
    is_async: bool


class _What(NamedTuple):
    """Which arguments of a function it gives, gets, and who the other one is."""

    given: str
    got: str
    peer: tuple[str, str] = ("", "")
    always_async: bool = False


_WHAT: Mapping[str, _What] = {
    "all_reduce": _What("tensor", "tensor"),
    "broadcast": _What("tensor", "tensor", ("src", "group_src")),
    "reduce": _What("tensor", "tensor", ("dst", "group_dst")),
    "all_gather": _What("tensor", "tensor_list"),
    "all_gather_into_tensor": _What("input_tensor", "output_tensor"),
    "all_gather_single": _What("input_tensor", "output_tensor"),
    "reduce_scatter": _What("input_list", "output"),
    "reduce_scatter_tensor": _What("input", "output"),
    "reduce_scatter_single": _What("input", "output"),
    "gather": _What("tensor", "gather_list", ("dst", "group_dst")),
    "scatter": _What("scatter_list", "tensor", ("src", "group_src")),
    "all_to_all": _What("input_tensor_list", "output_tensor_list"),
    "all_to_all_single": _What("input", "output"),
    "send": _What("tensor", "", ("dst", "group_dst")),
    "recv": _What("", "tensor", ("src", "group_src")),
    "isend": _What("tensor", "", ("dst", "group_dst"), always_async=True),
    "irecv": _What("", "tensor", ("src", "group_src"), always_async=True),
    "barrier": _What("", ""),
}


class CollectiveCalls:
    """Entered when a session starts, left when it has ended; :meth:`take` gives what was called since the last time."""

    def __init__(self, budget: int) -> None:
        self._room = max(budget // _SHARE // _BYTES_OF_A_CALL, _FEWEST)
        self._calls: deque[CollectiveCall] = deque(maxlen=self._room)
        self._lost = 0
        self._undo: list[Callable[[], None]] = []
        self._begun: dict[int, int] = {}
        """Of calls that run now: system thread ID -> start."""
        self._groups: dict[int, tuple[Any, GroupFacts]] = {}

    def __enter__(self) -> CollectiveCalls:
        module = sys.modules.get(_MODULE)
        if module is not None and "all_reduce" in vars(module):
            self._follow(module)
        else:
            waiting = WhenImported(_MODULE, self._follow)
            self._undo.append(waiting.remove)
            waiting.wait()
        _core.keep_collectives(self._room)
        return self

    def __exit__(self, *error: object) -> None:
        """torch's functions are themselves again; may be called again."""
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        _core.keep_collectives(0)

    def take(self) -> tuple[list[CollectiveCall], int]:
        """The calls that ended since, by start, and how many more there was no room for."""
        records, lost = taken_records()
        begun = dict(self._begun)  # after the records and before the calls: what made a record is in one of them
        calls, lost = list(self._calls), lost + self._lost
        for _ in calls:
            self._calls.popleft()
        self._lost = 0
        by_name = self._groups_by_name()
        calls += [
            _of_record(record, by_name)
            for record in outside_of(records, [(call.thread, call.start, call.end) for call in calls], begun)
        ]
        return sorted(calls, key=lambda call: call.start), lost

    def _groups_by_name(self) -> dict[str, GroupFacts]:
        """Those of torch that are there now, and this rank is part of."""
        module: Any = sys.modules.get(_MODULE)
        out: dict[str, GroupFacts] = {}
        try:
            for group in list(module._world.pg_names) if module is not None else ():
                if (facts := self._group(module, group)) is not None:
                    out[facts.name] = facts
        except Exception:
            return out  # of a torch that keeps them otherwise; the records have what is needed most
        return out

    def _follow(self, module: ModuleType) -> None:
        for name, what in _WHAT.items():
            original = vars(module).get(name)
            if original is None:
                continue  # of a newer torch
            ours = self._followed(module, name, what, original)
            self._put(module, name, original, ours)
            package = sys.modules.get("torch.distributed")
            if package is not None and vars(package).get(name) is original:
                self._put(package, name, original, ours)

    def _put(self, owner: ModuleType, name: str, original: Any, ours: Any) -> None:
        def put_back() -> None:
            if vars(owner).get(name) is ours:
                setattr(owner, name, original)

        self._undo.append(put_back)
        setattr(owner, name, ours)

    def _followed(self, module: Any, name: str, what: _What, original: Callable[..., Any]) -> Callable[..., Any]:
        try:
            names = [*inspect.signature(original).parameters]
        except (TypeError, ValueError):
            return original

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            thread = threading.get_native_id()
            if thread in self._begun:  # an older name calls the newer one, send calls isend
                return original(*args, **kwargs)
            start = self._begun[thread] = _core.now_ns()
            try:
                return original(*args, **kwargs)
            finally:
                end = _core.now_ns()
                self._keep(module, name, what, {**dict(zip(names, args, strict=False)), **kwargs}, thread, start, end)
                del self._begun[thread]

        return call

    def _keep(
        self, module: Any, name: str, what: _What, given: dict[str, Any], thread: int, start: int, end: int
    ) -> None:
        try:
            group = given.get("group")
            if group is None:
                group = module._get_default_group()
            facts = self._group(module, group)
            if facts is None:
                return  # this rank has no part in it
            sizes = [_bytes(given.get(key)) for key in (what.given, what.got)]
            dtype = _dtype(given.get(what.given)) or _dtype(given.get(what.got))
            peer = next((given[key] for key in what.peer if isinstance(given.get(key), int)), -1)
            call = CollectiveCall(
                start, end, thread, name, facts, dtype, sizes[0], sizes[1], peer, _sequence(group),
                what.always_async or bool(given.get("async_op", False)),
            )  # fmt: skip
        except Exception:
            # The program must not notice: the call itself has done what it did. Arguments that make no sense have raised there.
            return
        if len(self._calls) == self._calls.maxlen:
            self._lost += 1
        self._calls.append(call)

    def _group(self, module: Any, group: Any) -> GroupFacts | None:
        found = self._groups.get(id(group))
        if found is not None and found[0] is group:
            return found[1]
        ranks = [int(rank) for rank in module.get_process_group_ranks(group)]
        if module.get_rank() not in ranks:
            return None
        facts = GroupFacts(
            str(getattr(group, "group_name", "")),
            str(getattr(group, "group_desc", "")),
            str(module.get_backend(group)),
            json.dumps(ranks, separators=(",", ":")),
            len(ranks),
        )
        self._groups[id(group)] = group, facts
        return facts


_OF_ANOTHER = ("broadcast", "_broadcast_oop", "reduce", "_reduce_oop", "gather", "scatter", "send", "recv")
"""what NCCL's backend calls those in which one rank is the root, or the other one"""


def _of_record(record: CollectiveRecord, by_name: Mapping[str, GroupFacts]) -> CollectiveCall:
    facts = by_name.get(record.group) or GroupFacts(
        record.group, record.group_description, "", json.dumps(record.ranks, separators=(",", ":")) if record.ranks else "", record.group_size
    )  # fmt: skip
    return CollectiveCall(
        record.start, record.end, record.thread, record.name, facts, record.dtype, record.in_bytes, record.out_bytes,
        record.rank if record.name in _OF_ANOTHER else -1, record.sequence, record.is_async,
    )  # fmt: skip


def _sequence(group: Any) -> int:
    try:
        return int(group._get_sequence_number_for_group())
    except (AttributeError, RuntimeError):  # a backend that counts none
        return -1


def _tensors(value: Any) -> list[Any]:
    return [*value] if isinstance(value, (list, tuple)) else [] if value is None else [value]


def _bytes(value: Any) -> int:
    return sum(t.numel() * t.element_size() for t in _tensors(value))


def _dtype(value: Any) -> str:
    return next((str(t.dtype).removeprefix("torch.") for t in _tensors(value)), "")
