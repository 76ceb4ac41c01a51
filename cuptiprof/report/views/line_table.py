"""GPU time by line of the Python program, in the manner of kernprof: each chosen function with its source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from cuptiprof.analysis.trees.stack_times import stack_times
from cuptiprof.data.result import Result
from cuptiprof.report.model import Column, Heading, View, left_out, nothing
from cuptiprof.text.line_patterns import LinePattern
from cuptiprof.text.source_code import SourceCode
from cuptiprof.text.units import format_percent, format_time

_FUNCTIONS = 10
"""functions shown where none was chosen"""

_COLUMNS = (
    Column("function_title", "Function", "label", machine=False),
    Column("line", "Line #", "count", min_width=6),
    Column("hits", "Hits", "count", min_width=6),
    Column("gpu_ns", "GPU time", "duration", min_width=9),
    Column("per_hit_ns", "Per hit", "duration", min_width=9, rank=2),
    Column("percent", "% Time", "percent", min_width=7, rank=1),
    Column("call_ns", "In calls", "duration", min_width=9, rank=3),
    Column("file", "File", "label", human=False),
    Column("function", "Function", "label", human=False),
    Column("first_line", "First line", "count", human=False),
    Column("contents", "Line contents", "text"),
)
_LEGEND = (
    "Hits: kernels, copies and sets launched from the line, or from what it called; GPU time: of those; % Time: of the function's.",
)


@dataclass
class _Time:
    hits: int = 0
    gpu_ns: int = 0
    call_ns: int = 0

    def add(self, other: _Time) -> None:
        self.hits += other.hits
        self.gpu_ns += other.gpu_ns
        self.call_ns += other.call_ns


@dataclass
class _Function:
    """By line, and altogether; ``own``: where it is the innermost function of the user's."""

    own: _Time = field(default_factory=_Time)
    whole: _Time = field(default_factory=_Time)
    lines: defaultdict[int, _Time] = field(default_factory=lambda: defaultdict(_Time))


_Key = tuple[str, str, int]  # file, function, first line


def view(
    result: Result, *, demangle: bool = True, limit: int | None = None, lines: str | Iterable[str] | None = None
) -> View:
    """One block a function, one row a line of its source; what was not hit has no numbers.

    Args:
        limit: functions, by falling GPU time; default 10 unless they were chosen.
        lines: which functions: "train.py", "train.py:42" (the function that launched from there), "Model.forward"; several.
    """
    del demangle  # names of Python functions are not mangled
    patterns = [LinePattern(text) for text in ([lines] if isinstance(lines, str) else lines or ())]
    functions = _functions(result)
    chosen = [
        (key, of)
        for key, of in functions.items()
        if any(p.matches(key[0], key[1], line) for p in patterns for line in of.lines) or (not patterns and of.own.hits)
    ]
    chosen.sort(key=lambda item: (-(item[1].whole if patterns else item[1].own).gpu_ns, item[0]))
    if limit is None and not patterns:
        limit = _FUNCTIONS
    shown = chosen[:limit]
    whole = sum(stack_times(result).gpu_ns.tolist())
    source = SourceCode()
    data: dict[str, list[Any]] = {column.key: [] for column in _COLUMNS}
    for key, of in shown:
        for row in _rows(key, of, whole, source):
            for name, value in row.items():
                data[name].append(value)
    has_calls = any(of.whole.call_ns for _, of in shown)
    return View(
        columns=tuple(replace(c, human=False) if c.key == "call_ns" and not has_calls else c for c in _COLUMNS),
        data=data,
        footers=(*left_out(len(chosen), len(shown), "functions"), *(_LEGEND if shown else ())),
        notes={"": _nothing(result, patterns, functions)},
        headings=(Heading("function_title"),),
    )


def _functions(result: Result) -> dict[_Key, _Function]:
    stacks, times = result.python_stacks(), stack_times(result)
    out: dict[_Key, _Function] = defaultdict(_Function)
    columns = (times.stack.tolist(), times.hits.tolist(), times.gpu_ns.tolist(), times.call_ns.tolist())
    for stack, hits, gpu_ns, call_ns in zip(*columns, strict=True):
        time, is_innermost = _Time(hits, gpu_ns, call_ns), True
        seen: set[tuple[_Key, int]] = set()
        for frame in stacks.frames(stack):
            key = frame.file, frame.function, frame.first_line
            if frame.is_user and is_innermost:
                out[key].own.add(time)
                is_innermost = False
            if not any(known == key for known, _ in seen):
                out[key].whole.add(time)
            if (key, frame.line) not in seen:  # a function that calls itself was hit once
                out[key].lines[frame.line].add(time)
            seen.add((key, frame.line))
    return out


def _rows(key: _Key, of: _Function, whole: int, source: SourceCode) -> Iterable[dict[str, Any]]:
    file, function, first = key
    share = format_percent(100.0 * of.whole.gpu_ns / whole) if whole else "0%"
    title = f"{function} in {file}:{first}: {format_time(of.whole.gpu_ns)}, {share} of GPU time"
    if function.endswith(">"):  # a module, a lambda, a comprehension: their source has no end that one could see
        numbers = range(min(of.lines), max(of.lines) + 1)
    else:
        numbers = range(min(first, *of.lines), max(source.last_line(file, first), *of.lines) + 1)
    if len(numbers) > _LONGEST or source.line(file, max(of.lines)) is None:
        numbers = sorted(of.lines)  # type: ignore[assignment]
    for number in numbers:
        hit = of.lines.get(number)
        yield {
            "function_title": title,
            "line": number,
            "hits": hit.hits if hit else None,
            "gpu_ns": hit.gpu_ns if hit else None,
            "per_hit_ns": hit.gpu_ns / hit.hits if hit else None,
            "percent": (100.0 * hit.gpu_ns / of.whole.gpu_ns if of.whole.gpu_ns else 0.0) if hit else None,
            "call_ns": hit.call_ns if hit else None,
            "file": file,
            "function": function,
            "first_line": first,
            "contents": (source.line(file, number) or "").expandtabs(4),
        }


_LONGEST = 2000
"""lines of a function that are shown without hits"""


def _nothing(result: Result, patterns: list[LinePattern], functions: dict[_Key, _Function]) -> str:
    if not len(result.tables["stacks"]):
        if not len(result.kernels):
            return nothing("kernels", result.losses["filter_rejected"])
        return 'No lines were recorded: ask for them with sources="lines" or "stacks".'
    if patterns:
        names = ", ".join(sorted({key[1] for key, of in functions.items() if of.own.hits})[:10])
        return f"No function that launched work matches {', '.join(p.text for p in patterns)}; there are: {names}"
    return "No work was launched from the user's own code."
