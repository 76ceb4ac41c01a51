"""The points of a sweep: what each parameter is at each, as the function gets it and as results name it."""

from __future__ import annotations

import itertools
import json
import math
import numbers
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cuptiprof.bench.results.parts import Scalar
from cuptiprof.errors import BenchError

Params = Mapping[str, Iterable[Any]] | Sequence[Mapping[str, Any]]

MAX_POINTS = 100_000  # a product of more is a slip, and would fill the memory before the first measurement
MAX_LABEL = 200
ADDRESS = re.compile(r" at 0x[0-9a-f]+", re.IGNORECASE)  # in the repr() of objects that have no own


@dataclass(frozen=True)
class Point:
    """One point.

    Attributes:
        values: what the function gets, by parameter.
        params: the same as results name it: scalars as they are, other objects by their label.
    """

    values: Mapping[str, Any]
    params: Mapping[str, Scalar]

    @property
    def key(self) -> str:
        """The same text for the same point in every run."""
        return params_key(self.params)

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.params.items())


def params_key(params: Mapping[str, Scalar]) -> str:
    """Parameters as text by which points are told apart: 1, 1.0, "1" and True are four different values."""
    return json.dumps(params, sort_keys=True)


def label(value: Any) -> Scalar:
    """How results name a value: a scalar itself, a class or function by its name, another object by its str().

    Raises:
        BenchError: the name would not be the same in the next run, or is no name.
    """
    if value is None or isinstance(value, (bool, str)):
        text: Scalar = value
    elif isinstance(value, numbers.Real):  # NumPy's too
        text = int(value) if isinstance(value, numbers.Integral) else float(value)
        if isinstance(text, float) and not math.isfinite(text):
            raise BenchError(f"a parameter cannot be {value!r}: such values cannot be told apart in results")
    else:
        name = getattr(value, "__name__", None)
        text = name if isinstance(name, str) else str(value)
        if ADDRESS.search(text):
            raise BenchError(
                f"a parameter's value of type {type(value).__name__} has no name that lasts: {text[:MAX_LABEL]}",
                hint="sweep over names, and look the object up in the function",
            )
    if isinstance(text, str) and len(text) > MAX_LABEL:
        raise BenchError(f"a parameter's value is named by {len(text)} characters", hint=f"at most {MAX_LABEL}")
    return text


def labels(params: Mapping[str, Any]) -> dict[str, Scalar]:
    """Parameters as results name them.

    Raises:
        BenchError: no mapping, or a value without a name that lasts.
    """
    if not isinstance(params, Mapping):
        raise BenchError(f"params= is a dict of name and value, not {type(params).__name__}")
    return {_name(n): label(v) for n, v in params.items()}


def make_points(params: Params) -> tuple[Point, ...]:
    """The product of ``{"n": [1, 2], "dtype": [...]}``, the last parameter fastest, or a list of dicts as it is.

    Raises:
        BenchError: a parameter without values, a value or a point given twice, points with different parameters, too many points.
    """
    if isinstance(params, Mapping):
        return _product(params)
    if isinstance(params, (str, bytes)) or not isinstance(params, Sequence):
        raise BenchError(f"params= is a dict of lists or a list of dicts, not {type(params).__name__}")
    points: dict[str, Point] = {}
    for i, values in enumerate(params):
        if not isinstance(values, Mapping):
            raise BenchError(f"params[{i}] is {type(values).__name__}, not a dict")
        if other := set(values) ^ set(params[0]):
            raise BenchError(
                f"params[0] and params[{i}] do not have the same parameters: {', '.join(sorted(map(str, other)))}"
            )
        point = Point(dict(values), {_name(n): label(v) for n, v in values.items()})
        if point.key in points:
            raise BenchError(f"params[{i}] is a point that was given before: {point}")
        points[point.key] = point
    if not points:
        raise BenchError("params=[] has no points", hint="leave it out for a function without parameters")
    return tuple(points.values())


def _product(params: Mapping[str, Iterable[Any]]) -> tuple[Point, ...]:
    axes: list[list[tuple[str, Any, Scalar]]] = []
    for name, values in params.items():
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise BenchError(
                f"params[{name!r}] is {type(values).__name__}, not a list of values", hint=f'{{"{name}": [{values!r}]}}'
            )
        axis: dict[str, tuple[str, Any, Scalar]] = {}
        for value in itertools.islice(values, MAX_POINTS + 1):
            shown = label(value)
            if (key := json.dumps(shown)) in axis:
                raise BenchError(f"params[{name!r}] has {shown!r} twice")
            axis[key] = (_name(name), value, shown)
        if not axis:
            raise BenchError(f"params[{name!r}] has no values")
        axes.append(list(axis.values()))
    if (count := math.prod(map(len, axes))) > MAX_POINTS:
        raise BenchError(
            f"{count:,} points", hint=f"at most {MAX_POINTS:,}; a list of dicts names the ones that matter"
        )
    return tuple(
        Point({n: v for n, v, _ in cell}, {n: shown for n, _, shown in cell}) for cell in itertools.product(*axes)
    )


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise BenchError(f"{name!r} cannot be a parameter's name")
    return name
