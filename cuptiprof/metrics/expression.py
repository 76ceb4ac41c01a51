"""Expressions over perfworks metrics: parsed once, evaluated on whole columns. No ``eval``.

Python's syntax, of which only numbers, ``+ - * /``, brackets, dotted names of metrics and functions of one argument.

A division by zero has no value: NaN, never infinity, so that one empty kernel cannot spoil a mean unseen.
``nan_as_zero(x)``, as in Nsight Compute's own derived metrics, says that no work counts as 0.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cuptiprof.errors import MetricError

Values: TypeAlias = npt.NDArray[np.float64]

MAX_LENGTH = 8192  # characters; the longest of the catalogue has 700


def _divide(a: Values, b: Values) -> Values:
    quotient: Values = np.divide(a, b, out=np.full(np.broadcast(a, b).shape, np.nan), where=b != 0)
    return quotient


def _nan_as_zero(a: Values) -> Values:
    return np.where(np.isnan(a), 0.0, a)


_FUNCTIONS: dict[str, Callable[[Values], Values]] = {"nan_as_zero": _nan_as_zero}
_OPERATORS: dict[type[ast.operator], Callable[[Values, Values], Values]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: _divide,
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
            MetricError: not an expression, or longer or deeper than any honest one (some 2,500 terms are not).
        """
        self.text = text
        self._program = _program(text)
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
                    stack.append(value(stack.pop()))
                elif code == "negate":
                    stack.append(np.negative(stack.pop()))
                else:
                    b, a = stack.pop(), stack.pop()
                    stack.append(value(a, b))
        result: Values = np.array(np.broadcast_to(stack.pop(), shape), np.float64)
        return result


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> Expression:
    """The expression of ``text``; the same object for the same text.

    Raises:
        MetricError: as :class:`Expression`.
    """
    return Expression(text)


def _program(text: str) -> list[tuple[str, Any]]:
    """For a stack: (code, value) with codes number, name, call, negate and operator."""
    if len(text) > MAX_LENGTH:
        raise MetricError(f"the expression has {len(text)} characters, more than {MAX_LENGTH}")
    if not text.isascii():  # Python would take other letters for these
        raise MetricError(f"cannot read {_short(text)!r}: an expression is ASCII")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as e:
        where = f" at character {e.offset}" if e.offset else ""
        raise MetricError(f"cannot read {_short(text)!r}: {_short(e.msg)}{where}") from None
    except (ValueError, RecursionError, MemoryError) as e:
        raise MetricError(f"cannot read {_short(text)!r}: {_short(str(e)) or 'nested too deep'}") from None
    # Python's trees lean to the left, one level a term: a walk that recursed would end where they are long.
    backwards: list[tuple[str, Any]] = []
    left: list[ast.expr] = [tree.body]
    while left:
        match left.pop():
            case ast.BinOp(a, sign, b) if type(sign) in _OPERATORS:
                backwards.append(("operator", _OPERATORS[type(sign)]))
                left += (a, b)
            case ast.UnaryOp(ast.UAdd(), a):
                left.append(a)
            case ast.UnaryOp(ast.USub(), a):
                backwards.append(("negate", None))
                left.append(a)
            case ast.Constant(int() | float() as value) if not isinstance(value, bool):
                backwards.append(("number", _number(value, text)))
            case ast.Call(ast.Name(function), [ast.expr() as a], []) if not isinstance(a, ast.Starred):
                if function not in _FUNCTIONS:
                    raise MetricError(f"unknown function {function!r}", hint=f"known: {', '.join(_FUNCTIONS)}")
                backwards.append(("call", _FUNCTIONS[function]))
                left.append(a)
            case ast.Name() | ast.Attribute() as node if (name := _dotted(node)) is not None:
                if "__" not in name:
                    raise MetricError(f"{name!r} in {_short(text)!r} is not a perfworks metric")
                backwards.append(("name", name))
            case node:
                there = ast.get_source_segment(text.strip(), node) or ""
                raise MetricError(f"{_short(there)!r} at character {node.col_offset + 1} has no place in an expression")
    return backwards[::-1]


def _number(value: float, text: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise MetricError(f"a number in {_short(text)!r} is beyond float64") from None


def _dotted(node: ast.expr) -> str | None:
    """``a.b.c``; None: not names all the way."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
