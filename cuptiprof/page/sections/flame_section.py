"""Flame graphs of GPU time by region, module, Python stack and operator."""

from __future__ import annotations

from cuptiprof.analysis.trees.flame import STACK_WORDS, StackBy
from cuptiprof.analysis.trees.flame_tree import FlameTree, flame_tree
from cuptiprof.data.result import Result
from cuptiprof.page.charts import TableData, chart_table
from cuptiprof.page.section import Section
from cuptiprof.report.model import Column, Report

_ORDER: tuple[StackBy, ...] = ("region", "module", "python", "operator")
_COLUMNS = (
    Column("total_ns", "GPU time", "duration"),
    Column("percent", "Time(%)", "percent"),
    Column("depth", "Depth", "count", human=False, machine=False),
    Column("what", "What", "label"),
    Column("name", "Name", "text"),
)
_SUMMARY = "Each box is as wide as its GPU time; below it is what lies in it, down to kernels, copies and sets."


def flame(result: Result) -> Section | None:
    """None where nothing says in which region, module, ... work was launched."""
    found = {by: tree for by in _ORDER if (tree := flame_tree(result, by)) is not None}
    if not found:
        return None
    return Section(
        "flame",
        "Flame graph",
        _SUMMARY,
        tuple(_table(by, tree) for by, tree in found.items()),
        facts={"groupings": [STACK_WORDS[by] for by in found]},
        mount="flame",
        scripts=("flame_layout.js", "flame.js"),
        styles=("charts.css", "flame.css"),
        wide=True,
    )


def _table(by: StackBy, tree: FlameTree) -> Report:
    data: TableData = {
        "total_ns": tree.total,
        "percent": 100.0 * tree.total / max(tree.whole, 1),
        "depth": tree.depth,
        "what": ["GPU work" if is_work else STACK_WORDS[by] for is_work in tree.is_work],
        "name": tree.names,
    }
    footers = (f"{tree.left_out:,} lighter ones are left out.",) if tree.left_out else ()
    return chart_table(f"flame-{by}", f"GPU time by {STACK_WORDS[by]}", _COLUMNS, data, footers, "depth")
