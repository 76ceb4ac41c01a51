"""NVTX expressions, filter mode and regular expressions against what Nsight Compute's guide says, sentence by sentence.

Quotations are from NVIDIA's "Nsight Compute CLI" guide, chapters "NVTX Filtering" and "Command Line Options: Profile".
"""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuptiprof.errors import FilterError
from cuptiprof.filter.kernel_filter import KernelFilter
from cuptiprof.filter.launch import Launch


def selects(expression, **launch):
    return KernelFilter.from_ncu(nvtx_include=expression).select([Launch(**launch)]) == [0]


def start_end(*names, domain=""):
    return {"start_end": {domain: list(names)}}


def push_pop(*names, domain=""):
    return {"push_pop": {domain: list(names)}}


def test_push_pop_of_the_guides_example():
    """'"regex:Domain[A-Z]@Range[0-9]/" The kernels wrapped inside push/pop range with matching regex `Range[0-9]` of domain
    with matching regex `Domain[A-Z]` are profiled.'"""
    expression = "regex:Domain[A-Z]@Range[0-9]/"
    assert selects(expression, **push_pop("x", "Range7", "y", domain="DomainQ"))
    assert not selects(expression, **push_pop("Range7", domain="Domain1"))
    assert not selects(expression, **push_pop("RangeX", domain="DomainQ"))
    assert not selects(expression, **start_end("Range7", domain="DomainQ"))


def test_start_end_of_the_guides_example():
    """'"regex:[0-9]domainA@/[0-9]rangeA,RangeC[0-9/]" The kernels wrapped inside start/end ranges with matching regex
    `[0-9]rangeA` and `RangeC[0-9]` of domain with matching regex `[0-9]domainA` are profiled.'"""
    expression = "regex:[0-9]domainA@/[0-9]rangeA,RangeC[0-9/]"
    assert selects(expression, **start_end("RangeC3", "1rangeA", domain="5domainA"))
    assert not selects(expression, **start_end("1rangeA", domain="5domainA"))
    assert not selects(expression, **start_end("RangeC3", domain="5domainA"))
    assert not selects(expression, **start_end("RangeC3", "1rangeA", domain="domainA"))
    assert not selects(expression, **push_pop("1rangeA,RangeC3", domain="5domainA"))
    assert not selects(expression, **push_pop("1rangeA", "RangeC3", domain="5domainA"))


# "Provide '/' as a prefix to '[' or ']' only for the range part of the config if '[' or ']' is at the start or at the end of
# the range part, respectively. This is needed so that NCU can distinguish if '[' or ']' is part of the regex or represents
# the top/bottom of the stack." So a bracket anywhere else is part of the regex and says nothing of the kind of the ranges.
BRACKETS = [
    ("regex:A[0-9]x", start_end("A1x"), push_pop("A1x")),
    ("regex:A[0-9]x,B[0-9]y", start_end("B2y", "A1x"), start_end("A1x")),
    ("regex:/[0-9]A", start_end("1A"), push_pop("1A")),
    ("regex:A[0-9/]", start_end("A1"), push_pop("A1")),
    ("regex:A[0-9/]", start_end("A1"), start_end("A/")),
    ("regex:D@/[ab/]", start_end("b", domain="D"), start_end("c", domain="D")),
    ("regex:/[0-9]A/", push_pop("1A"), start_end("1A")),
    ("regex:A/[0-9]B/", push_pop("A", "1B"), push_pop("A", "x", "1B")),
    ("regex:A[0-9]/B/", push_pop("A1", "B"), push_pop("B", "A1")),
    ("regex:A/B[0-9/]", push_pop("A", "B1"), start_end("A", "B1")),
    ("regex:[A[0-9]x", push_pop("A1x", "y"), push_pop("y", "A1x")),
    ("regex:A[0-9]x]", push_pop("y", "A1x"), push_pop("A1x", "y")),
    ("regex:[/[0-9]A", push_pop("1A", "y"), push_pop("y", "1A")),
    ("regex:A[0-9/]]", push_pop("y", "A1"), push_pop("A1", "y")),
    (r"regex:A[x\,y]z,B", start_end("A,z", "B"), start_end("Axz")),
    (r"regex:A[x\/y]z", start_end("A/z"), push_pop("Axz")),
    (r"regex:A\[i\]", start_end("A[i]"), push_pop("A[i]")),
]


@pytest.mark.parametrize(
    ("expression", "inside", "outside"), BRACKETS, ids=[f"{i} {b[0]}" for i, b in enumerate(BRACKETS)]
)
def test_brackets_of_a_regex(expression, inside, outside):
    assert selects(expression, **inside)
    assert not selects(expression, **outside)


@pytest.mark.parametrize(
    "expression", ["regex:[0-9]A", "regex:[0-9]A/", "regex:A[0-9]", "regex:A/]", "regex:A[x,y]z", "regex:A[x/y]z"]
)
def test_half_a_bracket_expression_is_refused(expression):
    """Taken by the letter these are stack anchors and separators around half an expression: nobody means that."""
    with pytest.raises(FilterError, match="unmatched") as info:
        KernelFilter.from_ncu(nvtx_include=expression)
    assert "/[0-9]A" in info.value.hint


# Examples of the guide without regex.
PLAIN = [
    ("A_range/", push_pop("A_range"), start_end("A_range")),
    ("Domain-A@A_range/", push_pop("A_range", domain="Domain-A"), push_pop("A_range")),
    ("[A_range", push_pop("A_range", "B range"), push_pop("B range", "A_range")),
    ("Range Z]", push_pop("A_range", "Range Z"), push_pop("Range Z", "A_range")),
    ("A_range/*/B range", push_pop("A_range", "x", "y", "B range"), push_pop("B range", "A_range")),
    ("[A_range/+/Range Z", push_pop("A_range", "x", "Range Z"), push_pop("A_range", "Range Z")),
    ("Domain B@A_range/*/Range Z]", push_pop("A_range", "Range Z", domain="Domain B"), push_pop("A_range", "Range Z")),
    ("A_range,B range", start_end("B range", "A_range"), start_end("A_range")),
    ("B range,A_range,Range C", start_end("Range C", "B range", "A_range"), start_end("B range", "A_range")),
    ("Domain B@B range,Range Z", start_end("B range", "Range Z", domain="Domain B"), start_end("B range", "Range Z")),
    (r"A_range\[i\]", start_end("A_range[i]"), start_end("A_rangei")),
]


@pytest.mark.parametrize(("expression", "inside", "outside"), PLAIN, ids=[p[0] for p in PLAIN])
def test_examples_of_the_guide(expression, inside, outside):
    assert selects(expression, **inside)
    assert not selects(expression, **outside)


names = st.lists(st.sampled_from(["A1x", "B2", "3C", "Z"]), max_size=4, unique=True)
parts = st.lists(st.sampled_from(["A[0-9]x", "B[0-9]", "[0-9]C", "Z"]), min_size=1, max_size=3)


@settings(max_examples=300, deadline=None)
@given(parts, st.booleans(), names)
def test_start_and_end_marks_change_nothing_else(parts, is_push_pop, opened):
    """Any ranges with bracket expressions, written as the guide wants them, against plain Python."""
    text = ("/" if is_push_pop else ",").join(parts)
    text = "/" + text if text.startswith("[") else text
    if is_push_pop:
        text = text[:-1] + "/]" if len(parts) > 1 and text.endswith("]") else text + "/"
    elif text.endswith("]"):
        text = text[:-1] + "/]"

    def adjacent(at):
        return at + len(parts) <= len(opened) and all(re.search(p, n) for p, n in zip(parts, opened[at:], strict=False))

    expected = any(adjacent(i) for i in range(len(opened)))
    if not is_push_pop:
        expected = all(any(re.search(p, n) for n in opened) for p in parts) and bool(opened)
    made = push_pop(*opened) if is_push_pop else start_end(*opened)
    assert selects("regex:" + text, **made) == expected


def test_mode_per_gpu():
    """'per-gpu: Apply provided launch filters on kernel launches separately on each device. Effective launch filters for this
    mode are --launch-count and --launch-skip'."""
    launches = [Launch(name="k", device=i % 2) for i in range(8)]
    assert KernelFilter.from_ncu(skip=1, count=2, mode="per-gpu").select(launches) == [2, 3, 4, 5]
    assert KernelFilter.from_ncu(skip_before_match=3, mode="per-gpu").select(launches) == [3, 4, 5, 6, 7]
    assert KernelFilter.from_ncu(skip_before_match=3, skip=1, count=1, mode="per-gpu").select(launches) == [5, 6]
    assert KernelFilter.from_ncu(kernel_id="::k:2", mode="per-gpu").select(launches) == [1]
    assert KernelFilter.from_ncu(kernel_id="::k:2|3", skip=1, mode="per-gpu").select(launches) == []


def test_mode_per_launch_config():
    """'per-launch-config: Apply kernel filters and launch filters on kernel launches separately for each GPU launch
    parameter i.e. Grid Size, Block Size and Shared Memory.'"""
    launches = [Launch(name="k", grid=1 + i % 2) for i in range(8)]
    assert KernelFilter.from_ncu(skip_before_match=2, mode="per-launch-config").select(launches) == [4, 5, 6, 7]
    assert KernelFilter.from_ncu(kernel_id="::k:2", mode="per-launch-config").select(launches) == [2, 3]
