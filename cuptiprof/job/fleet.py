"""Questions to all ranks of a job at once, as Ibis expressions over the tables of ``engines``: what runs, is told by the engine.

All sums are of whole ns, so that every engine gives the same answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuptiprof import _core
from cuptiprof.job.engines import RankedTables, Tables


def kernels_by_name(tables: Tables) -> Any:
    """A row a kernel name, the most time first: ``ranks`` that ran it, ``launches``, ``total_ns``; ``least_ns`` and ``most_ns`` of a rank;
    ``slowest_rank`` (the lowest of equals); ``imbalance``: that most by the mean of the ranks that ran it."""
    k = _timed(tables["kernels"])
    per = k.group_by(["name", "rank"]).agg(launches=k.count(), total_ns=(k.end - k.start).sum())
    per = per.mutate(most_ns=per.total_ns.max().over(group_by=per.name))
    out = per.group_by("name").agg(
        ranks=per.count(),
        launches=per.launches.sum(),
        total_ns=per.total_ns.sum(),
        least_ns=per.total_ns.min(),
        most_ns=per.total_ns.max(),
        slowest_rank=per["rank"].min(where=per.total_ns == per.most_ns),
    )
    out = out.mutate(imbalance=_ratio(out.most_ns * out.ranks, out.total_ns))
    return out.order_by([out.total_ns.desc(), out.name])


def step_times(tables: Tables) -> Any:
    """A row a rank: ``steps``, ``median_ns``, ``least_ns`` and ``most_ns`` of the marked steps on the host, ``score``: best median by its own."""
    m = tables["markers"]
    m = m.filter(m.category == "step")
    m = m.mutate(length=m.end - m.start)
    out = m.group_by("rank").agg(
        steps=m.count(), median_ns=m.length.median().cast("float64"), least_ns=m.length.min(), most_ns=m.length.max()
    )
    out = out.mutate(score=out.median_ns.min().over() / out.median_ns.nullif(0))
    return out.order_by("rank")


def step_series(tables: Tables) -> Any:
    """A row a step: ``step``, ``ranks`` that marked it, ``longest_ns`` of a rank, ``slowest_rank`` (the lowest of equals)."""
    m = tables["markers"]
    m = m.filter(m.category == "step")
    m = m.mutate(length=m.end - m.start)
    m = m.mutate(longest=m.length.max().over(group_by=m.id))
    out = m.group_by(step=m.id).agg(
        ranks=m["rank"].nunique(),
        longest_ns=m.length.max(),
        slowest_rank=m["rank"].min(where=m.length == m.longest),
    )
    return out.order_by("step")


def gpu_time(tables: Tables) -> Any:
    """A row a rank and GPU: ``computation_ns``, ``communication_ns`` and ``overlap_ns`` of both, ``idle_ns``, from its first kernel to the end of its last
    (``span_ns``): lengths of unions of intervals, so that kernels that run together count once. Copies and sets are not in it."""
    import ibis

    k = _classified(tables)
    keys = ["rank", "device"]
    nothing = ibis.null("int64")
    k = k.mutate(
        computes=ibis.ifelse(k.communicates, nothing, k.end), talks=ibis.ifelse(k.communicates, k.end, nothing)
    )
    # Latest ends before each kernel: all three in one order, for sorting is what costs.
    before = ibis.window(group_by=keys, order_by=[k.start, k.end], preceding=(None, 1))
    k = k.mutate(
        busy=k.end.max().over(before), computed=k.computes.max().over(before), talked=k.talks.max().over(before)
    )
    out = k.group_by(keys).agg(
        span_ns=k.end.max() - k.start.min(),
        busy_ns=_adds(k, k.busy).sum(),
        computation_ns=_adds(k, k.computed).sum(where=~k.communicates).fill_null(0),
        communication_ns=_adds(k, k.talked).sum(where=k.communicates).fill_null(0),
    )
    out = out.mutate(
        overlap_ns=out.computation_ns + out.communication_ns - out.busy_ns, idle_ns=out.span_ns - out.busy_ns
    )
    out = out.select(*keys, "span_ns", "computation_ns", "communication_ns", "overlap_ns", "idle_ns")
    return out.order_by(keys)


def imbalance(tables: Tables) -> Any:
    """A row a marked step: time in kernels that do not communicate, summed a rank: ``mean_ns``, ``most_ns``, ``slowest_rank`` (the lowest of equals),
    ``imbalance``: most by mean; what was launched in no step is in a row without number."""
    import ibis

    k = _classified(tables)
    k = k.filter(~k.communicates)
    k = k.mutate(step=ibis.ifelse(k.step > 0, k.step - 1, ibis.null("int64")))
    per = k.group_by(["step", "rank"]).agg(own_ns=(k.end - k.start).sum())
    per = per.mutate(longest=per.own_ns.max().over(group_by=per.step))
    out = per.group_by("step").agg(
        ranks=per.count(),
        total_ns=per.own_ns.sum(),
        most_ns=per.own_ns.max(),
        slowest_rank=per["rank"].min(where=per.own_ns == per.longest),
    )
    out = out.mutate(mean_ns=_ratio(out.total_ns, out.ranks), imbalance=_ratio(out.most_ns * out.ranks, out.total_ns))
    return out.drop("total_ns").order_by("step")


def collectives(tables: Tables) -> Any:
    """A row a kind of collective, the longest first: ``name``, ``group_size``, ``in_bytes``, ``groups``, ``ranks``, ``calls``, ``total_ns`` in them on all
    ranks, ``transfer_ns`` of it: each as long as the shortest of the ranks of that call (TensorBoard's plugin for torch.profiler); ``waiting_ns`` the rest;
    ``unmatched`` calls, of which not all ranks are there, are in neither."""
    c = collective_calls(tables)
    same = [c.group, c.ranks, c.name, c.index]
    c = c.mutate(
        length=c.end - c.start,
        shortest=(c.end - c.start).min().over(group_by=same),
        is_whole=c["rank"].count().over(group_by=same) == c.group_size,
    )
    out = c.group_by(["name", "group_size", "in_bytes"]).agg(
        groups=(c.group.concat(c.ranks)).nunique(),
        ranks=c["rank"].nunique(),
        calls=c.count(),
        unmatched=(~c.is_whole).sum().cast("int64"),
        total_ns=c.length.sum(),
        transfer_ns=c.shortest.sum(where=c.is_whole).fill_null(0),
        waiting_ns=(c.length - c.shortest).sum(where=c.is_whole).fill_null(0),
    )
    return out.order_by([out.total_ns.desc(), out.name, out.group_size, out.in_bytes])


def collective_calls(tables: Tables) -> Any:
    """A row a call: ``rank``, ``step``, ``group``, ``ranks``, ``name``, ``group_size``, ``in_bytes``, ``index`` in its group; ``start`` and ``end`` on the rank's
    clock: of its kernels where it has any (``on_gpu``), else of the call on the host."""
    c, k = tables["collectives"], _timed(tables["kernels"])
    k = k.filter(k.collective > 0)
    k = k.group_by(kernel_rank=k["rank"], instance=k.collective).agg(first=k.start.min(), last=k.end.max())
    c = c.left_join(k, [c["rank"] == k.kernel_rank, c.instance == k.instance])
    same = [c["rank"], c.group, c.ranks, c.name]
    import ibis

    number = ibis.row_number().over(group_by=same, order_by=[c.start, c.instance]) + 1
    c = c.mutate(
        index=ibis.ifelse(c.sequence > 0, c.sequence, number),
        on_gpu=c["last"].notnull(),
        begin=ibis.coalesce(c["first"], c.start),
        stop=ibis.coalesce(c["last"], c.end),
    )
    return c.select(
        "rank", "step", "group", "ranks", "name", "group_size", "in_bytes", "index", "on_gpu", start="begin", end="stop"
    )


def kernel_medians(tables: Tables) -> Any:
    """A row a rank and name of a kernel that does not communicate: ``median_ns``, ``total_ns``."""
    k = _classified(tables)
    k = k.filter(~k.communicates)
    k = k.mutate(length=k.end - k.start)
    out = k.group_by(["rank", "name"]).agg(median_ns=k.length.median().cast("float64"), total_ns=k.length.sum())
    return out.order_by(["rank", "name"])


ANALYSES: dict[str, Callable[[Tables], Any]] = {
    "kernels": kernels_by_name,
    "steps": step_times,
    "gpus": gpu_time,
    "imbalance": imbalance,
    "collectives": collectives,
}
_BY_RANK = (gpu_time, kernel_medians)
"""questions whose rows are of one rank each, and need all of its kernels at once"""


def answer(ask: Callable[[Tables], Any], tables: Tables) -> Any:
    """What the engine says (``pyarrow.Table``). Medians and unions of intervals are asked of a few ranks after the others, where the engine works in this
    process: it then needs as much memory as those few, however many ranks there are.

    Args:
        ask: a function of this module.
    """
    if ask not in _BY_RANK or not isinstance(tables, RankedTables):
        return ask(tables).to_pyarrow()
    import pyarrow as pa

    return pa.concat_tables([ask(some).to_pyarrow() for some in tables.by_ranks()])


def _timed(kernels: Any) -> Any:
    return kernels.filter(kernels.end > 0)


def _classified(tables: Tables) -> Any:
    """Kernels, and whether each ``communicates``: by its name, as for one rank (``analysis.work.communication``)."""
    k = _timed(tables["kernels"])
    names = [str(name) for name in k.select("name").distinct().to_pyarrow()["name"].to_pylist()]
    of_communication = [name for name in names if _core.communicates(name)]
    import ibis

    return k.mutate(communicates=k.name.isin(of_communication) if of_communication else ibis.literal(False))


def _adds(kernels: Any, before: Any) -> Any:
    """What each kernel adds to a union of intervals: what lies behind the latest end of those before it."""
    import ibis

    k = kernels
    return ibis.greatest(k.end - ibis.greatest(k.start, before.fill_null(k.start)), 0)


def _ratio(a: Any, b: Any) -> Any:
    return a.cast("float64") / b.cast("float64").nullif(0.0)
