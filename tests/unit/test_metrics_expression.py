"""The expression evaluator: against a plain reference, on whole columns, and with hostile text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuptiprof.errors import MetricError
from cuptiprof.metrics.expression import MAX_LENGTH, Expression, parse

NAMES = ["sm__a.sum", "sm__b.avg.per_second", "l1tex__c_d.ratio", "LTS.TriageCompute.lts__e.avg"]
Tree = Any  # ("number", float) | ("name", str) | ("negate" | "nan_as_zero", tree) | (operator, tree, tree)

numbers = st.floats(0, 1e6, allow_nan=False).map(lambda x: ("number", float(f"{x:.6g}")))
leaves = numbers | st.sampled_from(NAMES).map(lambda n: ("name", n))
trees = st.recursive(
    leaves,
    lambda below: st.one_of(
        st.tuples(st.sampled_from(["negate", "nan_as_zero"]), below),
        st.tuples(st.sampled_from("+-*/"), below, below),
    ),
    max_leaves=12,
)
LEVEL = {"+": 1, "-": 1, "*": 2, "/": 2}


def write(tree: Tree, level: int = 0) -> str:
    """The tree as text, with only the brackets that precedence and left association need."""
    match tree:
        case ("number", value):
            return repr(value)
        case ("name", name):
            return str(name)
        case ("negate", below):
            text = "-" + write(below, 3)
            return f"({text})" if level > 2 else text
        case ("nan_as_zero", below):
            return f"nan_as_zero({write(below)})"
        case (sign, a, b):
            mine = LEVEL[sign]
            text = f"{write(a, mine)} {sign} {write(b, mine + 1)}"
            return f"({text})" if level > mine else text
    raise AssertionError(tree)


def reference(tree: Tree, values: dict[str, float]) -> float:
    """One number at a time, in Python's own floats."""
    match tree:
        case ("number", value):
            return float(value)
        case ("name", name):
            return values[name]
        case ("negate", below):
            return -reference(below, values)
        case ("nan_as_zero", below):
            x = reference(below, values)
            return 0.0 if math.isnan(x) else x
        case (sign, left, right):
            a, b = reference(left, values), reference(right, values)
            if sign == "/":
                return math.nan if b == 0 else a / b
            return a + b if sign == "+" else a - b if sign == "-" else a * b
    raise AssertionError(tree)


@settings(max_examples=300, deadline=None)
@given(trees, st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, 2.5, -3.0, 1e9, math.nan])] * 4), min_size=1, max_size=5))
def test_the_same_as_the_reference(tree: Tree, rows: list[tuple[float, ...]]) -> None:
    expression = Expression(write(tree))
    columns = {name: np.array([row[i] for row in rows]) for i, name in enumerate(NAMES)}
    got = np.broadcast_to(expression.evaluate(columns), len(rows))
    for i, row in enumerate(rows):
        want = reference(tree, dict(zip(NAMES, row, strict=True)))
        assert got[i] == want or (math.isnan(got[i]) and math.isnan(want)), expression.text
    assert set(expression.inputs) == {n for n in NAMES if n in write(tree)}


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60) | st.text("ab_.+-*/() 019e", max_size=60))
def test_any_text_parses_or_raises(text: str) -> None:
    try:
        expression = Expression(text)
    except MetricError:
        return
    values = {name: np.array([0.0, 2.0]) for name in expression.inputs}
    assert expression.evaluate(values).shape in ((), (2,))


@pytest.mark.parametrize(
    "text,message",
    [("", "cannot read"), ("a__b +", "cannot read 'a__b [+]'"), ("((1)", "cannot read"), ("1 2", "cannot read"), ("1)", "cannot read"), ("2 ** 3", "'2 [*][*] 3' at character 1 has no place"), ("exec(1)", "unknown function"), ("nan_as_zero", "not a perfworks metric"), ("x", "not a perfworks metric"), ("a__b; 1", "cannot read"), ("__import__('os')", "unknown function"), ("nan_as_zero('os')", "no place"), ("nan_as_zero(*a__b)", "no place"), ("nan_as_zero(a__b, 1)", "no place"), ("nan_as_zero(x=a__b)", "no place"), ("a__b.sum(1)", "no place"), ("(1).a__b", "no place"), ("nan_as_zero(1)(2)", "no place"), ("a__b.sum.", "cannot read"), ("a__b[0]", "no place"), ("(a__b := 1)", "no place"), ("[a__b]", "no place"), ("1j", "no place"), ("True", "no place"), ("a__b if 1 else 2", "no place"), ("f'{a__b}'", "no place"), ("lambda: 1", "no place"), ("not a__b", "no place"), ("~1", "no place"), ("a__b @ 2", "no place"), ("1 // 2", "no place"), ("1 < 2", "no place"), ("9" * 400, "beyond float64"), ("\N{GREEK SMALL LETTER ALPHA}__b", "ASCII"), ("\N{FULLWIDTH LATIN SMALL LETTER A}__b", "ASCII"), ("\0", "cannot read"), ("(" * 100_000, "characters"), ("1" * (MAX_LENGTH + 1), "characters"), ("1" * 5000, "cannot read|beyond float64"), ("(" * 300 + "1" + ")" * 300, "cannot read")],
)  # fmt: skip
def test_bad_text(text: str, message: str) -> None:
    with pytest.raises(MetricError, match=message) as error:
        parse(text)
    assert len(str(error.value)) < 300


def test_deep_and_long_but_allowed() -> None:
    assert parse("(" * 150 + "7" + ")" * 150).evaluate({}) == 7
    assert parse("-" * 60 + "7").evaluate({}) == 7
    assert parse(" + ".join(["a__b.sum"] * 700)).evaluate({"a__b.sum": 2.0}) == 1400


@pytest.mark.parametrize("text,value", [("-" * 8000 + "1", 1), ("+".join("1" * 4000), 4000)])
def test_what_is_too_long_for_python_is_an_error_like_others(text: str, value: float) -> None:
    """Which lengths are depends on Python's release."""
    try:
        assert parse(text).evaluate({}) == value
    except MetricError as e:
        assert "cannot read" in str(e)


def test_columns_broadcast_and_are_not_touched() -> None:
    a, b = np.array([[1.0], [2.0]]), np.array([1.0, 0.0, 4.0])
    got = parse("a__x.sum / b__y.sum").evaluate({"a__x.sum": a, "b__y.sum": b, "more__z.sum": b})
    np.testing.assert_array_equal(got, [[1, np.nan, 0.25], [2, np.nan, 0.5]])
    same = parse("a__x.sum").evaluate({"a__x.sum": a})
    same[:] = 9  # a copy: the caller's values stay
    assert a.tolist() == [[1.0], [2.0]]
    assert parse("a__x.sum").evaluate({"a__x.sum": np.array([3], np.uint64)}).dtype == np.float64


def test_a_missing_input_is_named() -> None:
    with pytest.raises(MetricError, match=r"no value for b__y\.sum, c__z\.max"):
        parse("a__x.sum + b__y.sum * c__z.max").evaluate({"a__x.sum": 1.0})


def test_division_by_zero_is_no_value_but_may_count_as_zero() -> None:
    values = {"a__x.sum": np.array([0.0, 5.0]), "b__y.sum": np.array([0.0, 0.0])}
    assert np.isnan(parse("a__x.sum / b__y.sum").evaluate(values)).all()
    assert parse("100 * nan_as_zero(a__x.sum / b__y.sum)").evaluate(values).tolist() == [0, 0]
