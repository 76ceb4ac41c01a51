"""Whom the threads of torch's autograd engine work for: backward is called on one thread and runs on others."""

from __future__ import annotations

import numpy as np

from cuptiprof.data.codes import distinct
from cuptiprof.data.tables import Array
from cuptiprof.io.kineto.operator_rows import Operators
from cuptiprof.io.kineto.trace_columns import Int64


class BackwardThreads:
    """Threads that run nodes of backward for others, by what runs on them and not by their names.

    The caller of backward is the thread on which the forward operator of a node ran, which arrows and sequence numbers tell. A node
    without (AccumulateGrad, a hook of DistributedDataParallel) has the caller of the node before it on its thread.

    Attributes:
        workers: system thread IDs, ascending.
    """

    def __init__(self, operators: Operators) -> None:
        self._operators = operators
        self.workers = self._found()
        known = np.flatnonzero((operators.caller >= 0) & self.is_worker(operators.thread))
        known = known[~self.is_worker(operators.caller[known])]
        order = np.lexsort((operators.start[known], operators.thread[known]))
        self._known = known[order]

    def _found(self) -> Int64:
        """Threads with nodes most of whose forward operators ran elsewhere: backward on the CPU runs on the thread that calls it. Where
        no forward operator is known, those that mostly run nodes, or begin with one."""
        operators = self._operators
        outermost = operators.spans.order[operators.spans.parent[operators.spans.order] < 0]
        threads, first, which = np.unique(operators.thread[outermost], return_index=True, return_inverse=True)
        which = which.reshape(-1)
        is_node = operators.is_node[outermost]

        def by_thread(chosen: Array) -> Int64:
            return np.bincount(which[chosen], minlength=len(threads)).astype(np.int64)

        caller = operators.caller[outermost]
        known = is_node & (caller >= 0)
        elsewhere = known & (caller != operators.thread[outermost])
        nodes, all_known = by_thread(is_node), by_thread(known)
        by_makers = 2 * by_thread(elsewhere) > all_known
        by_nodes = (2 * nodes > np.bincount(which, minlength=len(threads))) | is_node[first]
        return threads[(nodes > 0) & np.where(all_known > 0, by_makers, by_nodes)]

    def is_worker(self, thread: Array) -> Array:
        """Which of some threads are among them."""
        return np.isin(thread, self.workers)

    def nodes_at(self, thread: Int64, at: Int64) -> Int64:
        """Row of the node with a known caller that a worker ran last, at each time; -1: it ran none."""
        out = np.full(len(at), -1, np.int64)
        if not len(self._known):
            return out
        on, begun = self._operators.thread[self._known], self._operators.start[self._known]
        for one in distinct(thread).tolist():
            first, until = np.searchsorted(on, one), np.searchsorted(on, one, side="right")
            if first == until:
                continue
            queries = np.flatnonzero(thread == one)
            # Before the first whose caller is known: that one's, too.
            place = np.maximum(np.searchsorted(begun[first:until], at[queries], side="right") - 1, 0)
            out[queries] = self._known[first + place]
        return out
