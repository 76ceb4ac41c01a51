"""Expressions over perfworks metrics: parsed once, evaluated on whole columns. No ``eval``.

    sum     := product (("+" | "-") product)*
    product := factor (("*" | "/") factor)*
    factor  := ("+" | "-") factor | number | metric | function "(" sum ")" | "(" sum ")"

A division by zero has no value: NaN, never infinity, so that one empty kernel cannot spoil a mean unseen.
``nan_as_zero(x)``, as in Nsight Compute's own derived metrics, says that no work counts as 0.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cuptiprof.errors import MetricError

Values: TypeAlias = npt.NDArray[np.float64]

MAX_LENGTH = 8192  # characters; the longest of the catalogue has 700
MAX_DEPTH = 64  # brackets and signs inside one another

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)"
    r"|(?P<sign>[-+*/()]))",
    re.ASCII,
)


def _divide(a: Values, b: Values) -> Values:
    quotient: Values = np.divide(a, b, out=np.full(np.broadcast(a, b).shape, np.nan), where=b != 0)
    return quotient


def _nan_as_zero(a: Values) -> Values:
    return np.where(np.isnan(a), 0.0, a)


_FUNCTIONS: dict[str, Callable[[Values], Values]] = {"nan_as_zero": _nan_as_zero}
_OPERATORS: dict[str, Callable[[Values, Values], Values]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": _divide,
}


class Expression:
    """A parsed expression.

    Attributes:
        text: as it was written.
        inputs: the perfworks names in it, each once, in order of appearance.
    """

    def __init__(self, text: str) -> None:
        """Parse ``text``.

        Raises:
            MetricError: not an expression, or longer or deeper than any honest one.
        """
        self.text = text
        self._program = _Parser(text).program()
        self.inputs = tuple(dict.fromkeys(value for code, value in self._program if code == "name"))

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def evaluate(self, values: Mapping[str, npt.ArrayLike]) -> Values:
        """The value, float64, of the shape that the inputs broadcast to (an expression of numbers alone: shape ()).

        Args:
            values: perfworks name -> numbers, for at least all of ``inputs``.

        Raises:
            MetricError: an input is missing.
        """
        missing = [name for name in self.inputs if name not in values]
        if missing:
            raise MetricError(f"no value for {', '.join(missing)}, needed by {self.text!r}")
        columns = {name: np.asarray(values[name], np.float64) for name in self.inputs}
        shape = np.broadcast_shapes(*(column.shape for column in columns.values()))
        stack: list[Values] = []
        with np.errstate(over="ignore", invalid="ignore"):
            for code, value in self._program:
                if code == "number":
                    stack.append(np.asarray(value, np.float64))
                elif code == "name":
                    stack.append(columns[value])
                elif code == "call":
                    stack.append(_FUNCTIONS[value](stack.pop()))
                elif code == "negate":
                    stack.append(np.negative(stack.pop()))
                else:
                    b, a = stack.pop(), stack.pop()
                    stack.append(_OPERATORS[value](a, b))
        result: Values = np.array(np.broadcast_to(stack.pop(), shape), np.float64)
        return result


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> Expression:
    """The expression of ``text``; the same object for the same text.

    Raises:
        MetricError: as :class:`Expression`.
    """
    return Expression(text)


class _Parser:
    """Recursive descent to a stack program: (code, value) with codes number, name, call, negate, operator."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise MetricError(f"the expression has {len(text)} characters, more than {MAX_LENGTH}")
        self._text = text
        self._tokens = self._split()
        self._at = 0
        self._depth = 0
        self._out: list[tuple[str, Any]] = []

    def program(self) -> list[tuple[str, Any]]:
        self._sum()
        if self._peek() is not None:
            raise self._error()
        return self._out

    def _split(self) -> list[tuple[str, str, int]]:
        tokens, at, end = [], 0, len(self._text.rstrip())
        while at < end:
            match = _TOKEN.match(self._text, at)
            if match is None or match.lastgroup is None:
                raise MetricError(f"cannot read {self._text[at : at + 20]!r} in the expression {_short(self._text)!r}")
            tokens.append((match.lastgroup, match.group(match.lastgroup), match.start(match.lastgroup)))
            at = match.end()
        return tokens

    def _peek(self) -> str | None:
        """The next sign, "number" or "name"; None at the end."""
        if self._at == len(self._tokens):
            return None
        group, text, _ = self._tokens[self._at]
        return text if group == "sign" else group

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _sum(self) -> None:
        self._chain(self._product, "+-")

    def _product(self) -> None:
        self._chain(self._factor, "*/")

    def _chain(self, part: Callable[[], None], signs: str) -> None:
        part()
        while (sign := self._peek()) is not None and sign in signs:
            self._next()
            part()
            self._out.append(("operator", sign))

    def _factor(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise MetricError(f"the expression {_short(self._text)!r} is nested deeper than {MAX_DEPTH}")
        kind = self._peek()
        if kind in ("+", "-"):
            self._next()
            self._factor()
            if kind == "-":
                self._out.append(("negate", None))
        elif kind == "number":
            self._out.append(("number", float(self._next())))
        elif kind == "name":
            name = self._next()
            if self._peek() == "(":
                if name not in _FUNCTIONS:
                    raise MetricError(f"unknown function {name!r}", hint=f"known: {', '.join(_FUNCTIONS)}")
                self._brackets()
                self._out.append(("call", name))
            elif "__" in name:
                self._out.append(("name", name))
            else:
                raise MetricError(f"{name!r} in {_short(self._text)!r} is not a perfworks metric")
        elif kind == "(":
            self._brackets()
        else:
            raise self._error()
        self._depth -= 1

    def _brackets(self) -> None:
        self._next()
        self._sum()
        if self._peek() != ")":
            raise self._error()
        self._next()

    def _error(self) -> MetricError:
        if self._at == len(self._tokens):
            return MetricError(f"the expression {_short(self._text)!r} ends too early")
        _, text, at = self._tokens[self._at]
        return MetricError(f"{text!r} at character {at + 1} of {_short(self._text)!r} is out of place")


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
