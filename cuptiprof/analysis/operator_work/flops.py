"""Arithmetic operations of operators by the formulas of torch.profiler's ``with_flops`` (torch/csrc/profiler/util.cpp), from the
shapes of their inputs."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from cuptiprof.analysis.arrays.aggregate import Int64
from cuptiprof.analysis.counter_values.kernel_counters import match
from cuptiprof.data.codes import distinct_rows
from cuptiprof.data.result import Result

_CONV = "aten::conv2d"
_MOST = 2**62


def operator_flops(result: Result) -> Int64:
    """Operations of each row of ``operators``; 0 where there is no formula, or its shapes were not recorded.

    Products count a multiplication and an addition for each pair of elements; ``aten::mul`` and ``aten::add`` one operation an
    element of the first input. Torch computes the size of a convolution's result from its arguments; here it is that of the
    gradient that came back, so that convolutions without a backward have none.
    """
    operators = result.operators
    strings = operators.strings
    shapes = operators.codes("shapes")
    pairs, which = distinct_rows(operators.codes("name"), shapes)
    each = [_flops(str(strings[name]), _parsed(str(strings[shape]))) for name, shape in pairs.tolist()]
    out: Int64 = np.asarray(each, np.int64)[which] if len(each) else np.zeros(0, np.int64)
    conv = strings.find(_CONV)
    if conv is None:
        return out
    gradients = _gradient_shapes(result)
    rows = np.flatnonzero((operators.codes("name") == conv) & (gradients > 0))
    pairs, which = distinct_rows(shapes[rows], gradients[rows])
    each = [
        _conv2d(_parsed(str(strings[given])), _parsed(str(strings[gradient]))) for given, gradient in pairs.tolist()
    ]
    out[rows] = np.asarray(each, np.int64)[which] if len(each) else 0
    return out


def _gradient_shapes(result: Result) -> Int64:
    """For each operator the shapes (a string index) of the inputs of the node of backward that it, or an operator that it called,
    made; 0: none."""
    operators = result.operators
    instance = operators["instance"]
    made = match(operators["forward"], instance)
    nodes = np.flatnonzero((operators["forward"] > 0) & (made >= 0) & (operators.codes("shapes") > 0))
    out = np.zeros(len(operators), np.int64)
    at = made[nodes]
    for _ in range(2):  # aten::conv2d calls aten::convolution, which makes the node
        out[at] = operators.codes("shapes")[nodes]
        up = match(operators["parent"][at], instance)
        at, nodes = up[up >= 0], nodes[up >= 0]
    return out


def _parsed(text: str) -> list[list[int]]:
    """Shapes out of JSON; no list of those: none."""
    try:
        given = json.loads(text) if text else []
    except (ValueError, RecursionError):
        return []
    if not isinstance(given, list):
        return []
    return [shape if _is_shape(shape) else [] for shape in given]


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, list) and all(type(size) is int and 0 <= size < _MOST for size in shape)


def _flops(name: str, shapes: list[list[int]]) -> int:
    if name in ("aten::mul", "aten::add"):
        return _bounded(math.prod(shapes[0])) if shapes else 0
    if name in ("aten::mm", "aten::bmm"):
        factors = shapes[:2]
    elif name in ("aten::addmm", "aten::baddbmm"):
        factors = shapes[1:3]
    else:
        return 0
    if len(factors) < 2 or not factors[0] or not all(factors[0]):
        return 0
    left, right = factors
    batch = left[0] if name in ("aten::bmm", "aten::baddbmm") else 1
    return _bounded(2 * (math.prod(left) // left[-1] // batch) * math.prod(right))


def _conv2d(given: list[list[int]], gradient: list[list[int]]) -> int:
    if len(given) < 2 or not gradient or any(len(shape) != 4 for shape in (given[0], given[1], gradient[0])):
        return 0
    _, in_channels, kernel_h, kernel_w = given[1]
    return _bounded(2 * math.prod(gradient[0]) * in_channels * kernel_h * kernel_w)


def _bounded(flops: int) -> int:
    return flops if flops < _MOST else 0
