"""Tables of a recorded run -> simulated CUDA calls that give the same tables again.

A call and the GPU work that it caused (joined by correlation ID) become one op with the recorded times, IDs, name and
shape. Where a runtime call went through a recorded driver call of the same correlation ID, the work goes with the driver
call, as it did. The nodes of a graph launch, further work of any call, and work whose call was not recorded become ops
without a call.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from cuptiprof.data.codes import distinct_rows, renumbered
from cuptiprof.data.result import Result
from cuptiprof.sim.sim_device import DRIVER, OP_DTYPE, RUNTIME, Flag, Op, SimDevice

_WORK = {"kernels": Op.KERNEL, "memcpys": Op.MEMCPY, "memsets": Op.MEMSET}
_NO_STREAM = 0xFFFFFFFF
_SUFFIX = re.compile(r"_v\d+$")
_LAST_CBID = 2000
# CUpti_ActivitySynchronizationType -> op
_SYNCS = np.array([Op.API, Op.SYNC_EVENT, Op.STREAM_WAIT_EVENT, Op.SYNC_STREAM, Op.SYNC_CONTEXT], np.uint16)
# op field: column
_CALL = {"cbid": "cbid", "thread": "thread", "correlation": "correlation_id", "api_start": "start", "api_end": "end",
         "return_value": "return_value"}  # fmt: skip
_PLACE = {"gpu_start": "start", "gpu_end": "end", "stream": "stream", "context": "context", "device": "device",
          "correlation": "correlation_id", "channel": "channel_id"}  # fmt: skip
_CONFIG = ("registers_per_thread", "static_shared_memory", "dynamic_shared_memory", "local_memory_per_thread")
_COPY = {"bytes": "bytes", "copy_kind": "copy_kind", "src_kind": "src_kind", "dst_kind": "dst_kind",
         "dst_device": "dst_device", "dst_context": "dst_context"}  # fmt: skip
_SET = {"bytes": "bytes", "memory_kind": "memory_kind", "value": "value"}

Ops = npt.NDArray[Any]


class Builder:
    """Builds the ops of one run for one device.

    Attributes:
        not_replayed: what no op can stand for, counted by kind.
    """

    def __init__(self, result: Result, device: SimDevice) -> None:
        self._r = result
        self._device = device
        self._names: dict[int, dict[str, int]] = {}
        self.not_replayed: Counter[str] = Counter()

    def build(self) -> Ops:
        """All ops (:data:`OP_DTYPE`) in order of their calls."""
        work = np.concatenate([self._work(name) for name in _WORK])
        work = work[np.argsort(work["gpu_start"], kind="stable")]
        calls = self._calls()
        # The first work of a correlation ID goes with the innermost call of that ID: the one that began last.
        ids, first = np.unique(work["correlation"], return_index=True)
        order = np.lexsort((calls["api_start"], calls["correlation"]))
        sorted_ids = calls["correlation"][order]
        last = np.searchsorted(sorted_ids, ids, side="right") - 1
        has_call = (last >= 0) & (ids != 0)
        has_call[has_call] = sorted_ids[last[has_call]] == ids[has_call]
        rows, took = order[last[has_call]], first[has_call]
        nodes = work["graph_node_id"][took] != 0
        self._graph_launches(calls, rows[nodes], work[took[nodes]])
        rows, took = rows[~nodes], took[~nodes]
        kept = calls[rows]
        calls[rows] = work[took]
        for field in (*_CALL, "domain"):
            calls[field][rows] = kept[field]
        calls["flags"][rows] |= int(Flag.API_TIMES)
        self._syncs(calls)
        loose = np.delete(work, took)
        loose["flags"] |= int(Flag.NO_API)
        loose["api_start"] = loose["gpu_start"]
        ops = np.concatenate([calls[self._playable(calls)], loose])
        return ops[np.argsort(ops["api_start"], kind="stable")]

    def _graph_launches(self, calls: Ops, rows: Any, nodes: Ops) -> None:
        """A graph launch is a call of its own kind (of a graph without nodes); all its work comes without a call."""
        calls["kind"][rows] = Op.GRAPH_LAUNCH
        for field in ("graph_id", "device", "context", "stream"):
            calls[field][rows] = nodes[field]

    def _new(self, count: int) -> Ops:
        ops = np.zeros(count, OP_DTYPE)
        ops["size"] = OP_DTYPE.itemsize
        ops["domain"] = RUNTIME
        return ops

    def _work(self, name: str) -> Ops:
        table = self._r.tables[name]
        ops = self._new(len(table))
        ops["kind"] = _WORK[name]
        ops["flags"] = Flag.GPU_TIMES
        for field, column in _PLACE.items():
            ops[field] = table.codes(column)
        ops["graph_id"] = table.codes("graph_id")
        ops["graph_node_id"] = table.codes("graph_node_id")
        if name == "kernels":
            self._kernels(ops)
            return ops
        for field, column in (_COPY if name == "memcpys" else _SET).items():
            ops[field] = table.codes(column)
        ops["flags"][table.codes("is_async") != 0] |= int(Flag.ASYNC)
        if name == "memcpys":
            ops["kind"][table.codes("is_peer") != 0] = Op.MEMCPY_PEER
        return ops

    def _kernels(self, ops: Ops) -> None:
        table, configs = self._r.kernels, self._r.launch_configs
        codes = table.codes("name")
        used, which = renumbered(codes)
        addresses = [self._device.name_address(table.strings[code]) for code in used.tolist()]
        ops["name"] = np.array(addresses, np.uint64)[which] if len(used) else 0
        if not len(table):
            return
        config = table.codes("config")
        for prefix in ("grid", "block", "cluster"):
            ops[prefix] = np.stack([configs.codes(f"{prefix}_{a}") for a in "xyz"], axis=1)[config]
        for column in _CONFIG:
            ops[column] = configs.codes(column)[config]

    def _calls(self) -> Ops:
        table = self._r.api_calls
        ops = self._new(len(table))
        ops["kind"] = Op.API
        ops["flags"] = Flag.API_TIMES
        ops["domain"] = np.where(table.codes("domain") == 1, DRIVER, RUNTIME)
        for field, column in _CALL.items():
            ops[field] = table.codes(column)
        # A callback ID that is missing, or that is not the name's (another CUPTI's, another vendor's): the name counts.
        distinct, which = distinct_rows(ops["domain"], ops["cbid"], table.codes("name"))
        cbids = [self._cbid(domain, cbid, table.strings[name]) for domain, cbid, name in distinct.tolist()]
        ops["cbid"] = np.array(cbids, np.uint32)[which] if len(cbids) else 0
        return ops

    def _cbid(self, domain: int, cbid: int, name: str) -> int:
        """The callback ID to use for a function; 0: the stand-in has none."""
        if _SUFFIX.sub("", self._device.callback_name(domain, cbid)) == name:
            return cbid
        if domain not in self._names:
            names = ((self._device.callback_name(domain, i), i) for i in range(1, _LAST_CBID))
            self._names[domain] = {_SUFFIX.sub("", text): i for text, i in names if text}
        return self._names[domain].get(name, 0)

    def _syncs(self, calls: Ops) -> None:
        table = self._r.synchronizations
        if not len(table):
            return
        order = np.argsort(calls["correlation"], kind="stable")
        ids = calls["correlation"][order]
        wanted = table.codes("correlation_id")
        at = np.minimum(np.searchsorted(ids, wanted), max(0, len(ids) - 1))
        found = (ids[at] == wanted) & (wanted != 0) if len(ids) else np.zeros(len(wanted), bool)
        rows = order[at[found]] if len(ids) else at[found]
        calls["kind"][rows] = _SYNCS[np.minimum(table.codes("type")[found], len(_SYNCS) - 1)]
        calls["flags"][rows] |= int(Flag.GPU_TIMES)
        calls["gpu_start"][rows] = table.codes("start")[found]
        calls["gpu_end"][rows] = table.codes("end")[found]
        calls["context"][rows] = table.codes("context")[found]
        stream, event = table.codes("stream")[found], table.codes("event")[found]
        calls["stream"][rows] = np.where(stream == _NO_STREAM, 0, stream)
        calls["event"][rows] = np.where(event == _NO_STREAM, 0, event)
        self._count("synchronizations without their call", int((~found).sum()))

    def _playable(self, calls: Ops) -> Ops:
        known = calls["cbid"] != 0
        self._count("calls of functions that CUDA does not have", int((~known).sum()))
        # Their work is still played, without the call.
        works = ~known & (calls["kind"] != Op.API)
        calls["flags"][works] |= int(Flag.NO_API)
        playable: Ops = known | works
        return playable

    def _count(self, what: str, number: int) -> None:
        if number:
            self.not_replayed[what] += number
