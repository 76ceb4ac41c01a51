"""``-p n=2048,4096``: values of a parameter from the command line, in place of those that the benchmark has."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cuptiprof.bench.results.points import Point, label, make_points
from cuptiprof.bench.sweep.benchmark import Benchmark
from cuptiprof.errors import BenchError
from cuptiprof.text.nearest import did_you_mean

HINT = "for example -p n=2048,4096 -p dtype=float16"
_WORDS: dict[str, Any] = {"true": True, "false": False, "none": None}


def parse_values(expressions: Iterable[str]) -> dict[str, list[str]]:
    """``["n=1,2"]`` as ``{"n": ["1", "2"]}``.

    Raises:
        BenchError: it is no such thing, or a parameter is given twice.
    """
    out: dict[str, list[str]] = {}
    for expression in expressions:
        name, sign, text = expression.partition("=")
        name, values = name.strip(), [v.strip() for v in text.split(",")]
        if not sign or not name.isidentifier() or not all(values):
            raise BenchError(f"-p {expression}: not a parameter and its values", hint=HINT)
        if name in out:
            raise BenchError(f"-p gives {name!r} twice", hint=HINT)
        out[name] = values
    return out


def with_values(benchmarks: Sequence[Benchmark], given: Mapping[str, Sequence[str]]) -> list[Benchmark]:
    """The benchmarks at points with these values, those that have such a parameter.

    Raises:
        BenchError: no benchmark has it, or a text stands for no value of its kind.
    """
    known = dict.fromkeys(name for b in benchmarks for name in b.parameters)
    for name in given:
        if name not in known:
            raise BenchError(
                f"-p: no parameter {name!r}{did_you_mean(name, known)}", hint=f"there are: {', '.join(known) or 'none'}"
            )
    return [_replaced(b, {n: v for n, v in given.items() if n in b.parameters}) for b in benchmarks]


def _replaced(benchmark: Benchmark, given: Mapping[str, Sequence[str]]) -> Benchmark:
    if not given:
        return benchmark
    axes = {name: {_key(p.values[name]): p.values[name] for p in benchmark.points} for name in benchmark.parameters}
    new = {name: [_value(name, text, list(axes[name].values())) for text in texts] for name, texts in given.items()}
    points: dict[str, Point] = {}
    for old in benchmark.points:
        cells = make_points({name: new.get(name, [old.values[name]]) for name in benchmark.parameters})
        points.update((point.key, point) for point in cells)
    out = copy.copy(benchmark)
    out.points = _in_order(tuple(points.values()), benchmark.parameters)
    return out


def _in_order(points: tuple[Point, ...], names: Sequence[str]) -> tuple[Point, ...]:
    """All combinations come with the last parameter fastest, as always; a list of points as it is."""
    places = {name: {k: i for i, k in enumerate(dict.fromkeys(_key(p.values[name]) for p in points))} for name in names}
    if len(points) < math.prod(map(len, places.values())):
        return points
    return tuple(sorted(points, key=lambda p: [places[name][_key(p.values[name])] for name in names]))


def _key(value: Any) -> str:
    return repr(label(value))


def _value(name: str, text: str, present: Sequence[Any]) -> Any:
    """What `text` stands for: a value that the parameter has, or another one of their kind."""
    for value in present:
        if text in (str(label(value)), str(label(value)).rpartition(".")[2]):
            return value
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    kinds = {type(v) for v in present if v is not None}
    if kinds == {str}:
        return text
    try:
        if kinds and kinds <= {int, float}:
            return int(text) if kinds == {int} else float(text)
    except ValueError:
        raise BenchError(f"-p {name}={text}: {text!r} is not a number", hint=HINT) from None
    shown = [str(label(v)) for v in present]
    # torch.float16 beside torch.float32: objects of a kind, by the name under which their module has them.
    module, dot, _ = str(present[0]).rpartition(".")
    found = getattr(sys.modules.get(module), text.rpartition(".")[2], None) if dot else None
    if found is not None and type(found) in kinds:
        return found
    raise BenchError(
        f"-p {name}={text}: no such value{did_you_mean(text, shown)}", hint=f"there are: {', '.join(shown[:20])}"
    )
