"""``--filter``: which points. ``n>=512,dtype=float16|bfloat16`` takes those for which all conditions hold."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cuptiprof.bench.results.parts import Scalar
from cuptiprof.errors import BenchError
from cuptiprof.text.nearest import did_you_mean

_CONDITION = re.compile(r"\s*(\w+)\s*(<=|>=|!=|==|=|<|>)\s*(.*?)\s*", re.DOTALL)
_ORDER: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WORDS: dict[str, Scalar] = {"true": True, "false": False, "none": None}
HINT = "for example --filter 'n>=512,dtype=float16|bfloat16'"


@dataclass(frozen=True)
class Condition:
    """One comparison of a parameter with values; several values are alternatives."""

    name: str
    sign: str
    values: tuple[str, ...]

    def holds(self, params: Mapping[str, Scalar]) -> bool:
        """False where there is no such parameter."""
        if self.name not in params:
            return False
        value = params[self.name]
        if self.sign in _ORDER:
            number = _number(value)
            return number is not None and _ORDER[self.sign](number, float(self.values[0]))
        return any(_equal(value, text) for text in self.values) == (self.sign != "!=")


def parse(expression: str) -> tuple[Condition, ...]:
    """The conditions of an expression.

    Raises:
        BenchError: it cannot be understood.
    """
    out = []
    for part in expression.split(","):
        match = _CONDITION.fullmatch(part)
        if match is None or not match.group(3):
            raise BenchError(f"--filter: {part.strip()!r} is no condition on a parameter", hint=HINT)
        name, sign, text = match.groups()
        values = (text,) if sign in _ORDER else tuple(v.strip() for v in text.split("|"))
        if sign in _ORDER and _number_of(text) is None:
            raise BenchError(f"--filter: {name}{sign}{text}: {text!r} is not a number", hint=HINT)
        out.append(Condition(name, "=" if sign == "==" else sign, values))
    return tuple(out)


T = TypeVar("T")


def select(
    items: Sequence[T], conditions: Iterable[Condition], params_of: Callable[[T], Mapping[str, Scalar]]
) -> list[T]:
    """Those items for whose parameters all conditions hold.

    Raises:
        BenchError: no item has such a parameter or value, or none is left.
    """
    left = list(items)
    for condition in conditions:
        known = dict.fromkeys(name for item in items for name in params_of(item))
        if condition.name not in known:
            raise BenchError(
                f"--filter: no parameter {condition.name!r}{did_you_mean(condition.name, known)}",
                hint=f"there are: {', '.join(known) or 'none'}",
            )
        if condition.sign == "=":
            _check_values(condition, [params_of(item).get(condition.name) for item in items])
        left = [item for item in left if condition.holds(params_of(item))]
    if items and not left:
        raise BenchError("--filter leaves no point", hint="--list shows the points")
    return left


def _check_values(condition: Condition, present: Sequence[Scalar]) -> None:
    """A value that no point has is a slip."""
    for text in condition.values:
        if not any(_equal(value, text) for value in present):
            shown = list(dict.fromkeys(str(v) for v in present if v is not None))
            raise BenchError(
                f"--filter: no point has {condition.name}={text}{did_you_mean(text, shown)}",
                hint=f"there are: {', '.join(shown[:20])}",
            )


def _equal(value: Scalar, text: str) -> bool:
    if isinstance(value, str):
        return value == text
    if value is None or isinstance(value, bool):
        return text.lower() in _WORDS and _WORDS[text.lower()] is value
    number = _number_of(text)
    return number is not None and value == number


def _number(value: Scalar) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _number_of(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
