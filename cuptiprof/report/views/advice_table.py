"""Advice: what can be gained at most, where, and below in sentences what was seen and what to try."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cuptiprof.analysis.advice.advise import advise
from cuptiprof.analysis.advice.suggestion import Advice, Place, Suggestion
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, View, left_out, nothing
from cuptiprof.text.short_names import cut_middle, shorten
from cuptiprof.text.units import format_percent, format_time

_ROWS = 10  # findings where no limit says otherwise
_NAME = 60  # cells of a name in a sentence

_PLACES = ("kernel", "operator", "module", "line", "region", "step", "call")
_COLUMNS = (
    Column("rank", "#", "count"),
    Column("saves_ns", "At most", "duration", min_width=8),
    Column("saves_pct", "Of wall", "percent"),
    Column("time_ns", "About", "duration", rank=2),
    Column("rule", "Rule", "label", human=False),
    Column("title", "What", "text"),
    Column("where", "Where", "text", machine=False, is_function=True),
    *(Column(place, place.capitalize(), "text", human=False) for place in _PLACES),
    Column("share_pct", "There", "percent", human=False),
    Column("text", "Text", "text", human=False),
    Column("try", "Try", "text", human=False),
)
_AT_MOST = "At most: GPU time that following it can save; several may be the same time."
_LEGEND = f"{_AT_MOST} Of wall: of that of all GPUs."
_LEGEND_BUSY = f"{_AT_MOST} Of busy: of the time in which GPUs worked."
NOTHING = "Nothing stands out."


def view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """One row a finding, what can save most first; ``limit`` is rows (default: 10)."""
    advice = advise(result, demangle, _ROWS if limit is None else limit)
    found = advice.findings
    data: dict[str, list[Any]] = {column.key: [] for column in _COLUMNS}
    for rank, finding in enumerate(found, 1):
        row = {
            "rank": rank, "saves_ns": finding.saves or None, "time_ns": finding.time or None, "rule": finding.rule, "title": finding.title,
            "saves_pct": 100.0 * finding.saves / advice.whole if finding.saves and advice.whole else None,
            "where": _where(finding.place), "share_pct": 100.0 * finding.place.share, "text": finding.text, "try": finding.try_,
            **{place: getattr(finding.place, place) or None for place in _PLACES},
        }  # fmt: skip
        for key, column in data.items():
            column.append(row[key])
    sentences, tried = [], dict[str, int]()
    for rank, finding in enumerate(found, 1):
        first = tried.setdefault(finding.try_, rank)
        sentences.append(
            f"{rank}. {said(finding, advice)} Try{f': as {first}.' if first < rank else f': {finding.try_}'}"
        )
    return View(
        columns=_COLUMNS
        if advice.of_wall
        else tuple(replace(c, title="Of busy") if c.key == "saves_pct" else c for c in _COLUMNS),
        data=data,
        footers=(
            *left_out(advice.count, len(found), "findings"),
            *sentences,
            *((_LEGEND if advice.of_wall else _LEGEND_BUSY,) if found else ()),
            *advice.notes,
        ),
        notes={} if advice.count else {"": _nothing(result, advice)},
        facts={"findings": advice.count, "whole_ns": advice.whole, "notes": advice.notes},
    )


def _nothing(result: Result, advice: Advice) -> str:
    return NOTHING if advice.whole and advice.gpus else nothing("GPU activities", result.losses["filter_rejected"])


def said(finding: Suggestion, advice: Advice) -> str:
    """A finding as sentences: what, where, how much."""
    text = f"{finding.title}{_at(finding.place)}: {finding.text}"
    if not finding.saves:
        return text
    return f"{text} At most {_saves(finding, advice)}."


def sentence(finding: Suggestion, advice: Advice) -> str:
    """A finding in one short sentence, for the overview."""
    share = f": at most {_saves(finding, advice)}" if finding.saves else ""
    return f"{finding.title}{_at(finding.place)}{share}. {finding.try_.split('; ')[0].split('. ')[0].rstrip('.')}."


def _saves(finding: Suggestion, advice: Advice) -> str:
    share = format_percent(100.0 * finding.saves / max(advice.whole, 1))
    return f"{format_time(finding.saves)} ({share}{'' if advice.of_wall else ' of busy time'})"


def _where(place: Place) -> str | None:
    """The one name that says most."""
    return (
        place.kernel or place.step or place.operator or place.module or place.line or place.region or place.call or None
    )


def _at(place: Place) -> str:
    """The kernel, and the narrowest places it was launched from."""
    parts = [_cut(place.kernel)] if place.kernel else [f"step {_cut(place.step)}"] if place.step else []
    within = [cut_middle(name, _NAME) for name in (place.operator, place.module, place.line or place.region) if name]
    if within:
        share = f" ({100 * place.share:.0f} %)" if place.share < 0.995 else ""
        where = "before work launched in" if place.before else "in"
        parts.append(f"{'mostly ' if share else ''}{where} {', '.join(within)}{share}")
    return f" ({'; '.join(parts)})" if parts else ""


def _cut(name: str) -> str:
    return shorten([name], _NAME)[name]
