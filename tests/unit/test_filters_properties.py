"""Filters against independent reference implementations in a few lines of Python, on random input."""

import fnmatch
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from cuptiprof import _core
from cuptiprof._core import function_base
from cuptiprof.errors import FilterError
from cuptiprof.filter.kernel_filter import KernelFilter
from cuptiprof.filter.launch import Launch
from cuptiprof.text.nearest import nearest

quick = settings(max_examples=300, deadline=None)
patterns = st.text(alphabet="ab*?[]!-é\n", min_size=1, max_size=8)
any_text = st.text(max_size=60) | st.text(alphabet="ab:/@,[]*+\\()|{}0123456789^$.regx", max_size=40)


@quick
@given(patterns, st.text(alphabet="ab-]![é\n", max_size=8))
def test_glob_is_fnmatch(pattern, name):
    assert KernelFilter(pattern, base="mangled").matches_name(name) == fnmatch.fnmatchcase(name, pattern)


ere = st.recursive(
    st.sampled_from(["a", "b", "c", ".", "[ab]", "[^a]", "ab", "^", "$"]),
    lambda inner: (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map("|".join).map(lambda e: f"({e})")
        | st.tuples(inner, st.sampled_from("*+?")).map(lambda t: f"({t[0]}){t[1]}")
        | inner.map(lambda e: f"({e}){{1,3}}")
    ),
    max_leaves=6,
)


@quick
@given(ere, st.text(alphabet="abc", max_size=8))
def test_regex_is_a_search(expression, name):
    expected = re.search(expression.replace("$", r"\Z"), name) is not None
    assert KernelFilter("regex:" + expression, base="mangled").matches_name(name) == expected


# Launches and counting.

launches = st.lists(
    st.builds(
        Launch,
        name=st.sampled_from(["foo", "bar", "foobar"]),
        device=st.integers(0, 2),
        context=st.integers(1, 2),
        stream=st.integers(0, 2),
        grid=st.integers(1, 2),
        block=st.integers(1, 2),
        shared_memory=st.sampled_from([0, 64]),
        region=st.sampled_from(["", "fwd", "fwd/a", "bwd/a"]),
        thread=st.integers(1, 2),
    ),
    max_size=40,
)


def config(launch):
    return launch.grid, launch.block, launch.shared_memory


def reference(launches, matches, *, devices=None, before=0, skip=0, every=1, count=None, mode="global"):
    group_of = {"global": lambda x: 0, "per-gpu": lambda x: x.device, "per-launch-config": config}[mode]
    of_devices = [(i, launch) for i, launch in enumerate(launches) if devices is None or launch.device in devices]
    if mode == "per-gpu":  # skip_before_match alone is not counted by device
        of_devices, before = of_devices[before:], 0
    groups = {}
    for i, launch in of_devices:
        groups.setdefault(group_of(launch), []).append((i, launch))
    selected = []
    for members in groups.values():
        matching = [i for i, launch in members[before:] if matches(launch)]
        selected += matching[skip::every][:count]
    return sorted(selected)


counting = st.fixed_dictionaries(
    {"skip": st.integers(0, 4)},
    optional={
        "count": st.integers(0, 4),
        "skip_before_match": st.integers(0, 5),
        "mode": st.sampled_from(["global", "per-gpu", "per-launch-config"]),
        "devices": st.sets(st.integers(0, 2), min_size=1),
    },
)


@quick
@given(
    launches,
    counting,
    st.integers(1, 3),
    st.sampled_from([None, "foo", "foo*"]),
    st.sampled_from([None, "fwd", "*/a"]),
)
def test_counting(launches, keywords, every, pattern, region):
    def matches(launch):
        components = launch.region.split("/") if launch.region else []
        inside = {"fwd": "fwd" in components, "*/a": launch.region.endswith("/a"), None: True}[region]
        return inside and (pattern is None or fnmatch.fnmatchcase(launch.name, pattern))

    kernel_filter = KernelFilter(pattern, regions=region, every=every, **keywords)
    renamed = {("before" if k == "skip_before_match" else k): v for k, v in keywords.items()}
    assert kernel_filter.select(launches) == reference(launches, matches, every=every, **renamed)


@quick
@given(launches, counting, st.sampled_from(["foo", "regex:foo", "regex:^(foo|bar)$"]))
def test_ncu_counting(launches, keywords, name):
    def matches(launch):
        return re.search(name[6:], launch.name) if name.startswith("regex:") else launch.name == name

    renamed = {("before" if k == "skip_before_match" else k): v for k, v in keywords.items()}
    assert KernelFilter.from_ncu(kernel_name=name, **keywords).select(launches) == reference(
        launches, matches, **renamed
    )


fields = st.tuples(
    st.sampled_from(["", "1", "2", "1|2"]),
    st.sampled_from(["", "0", "1", "0|2"]),
    st.sampled_from(["", "foo", "bar"]),
    st.sampled_from(["", "1", "2", "1|3"]),
)


@quick
@given(launches, fields, st.sampled_from(["nvprof", "ncu", "ncu regex"]))
def test_launch_ids(launches, fields, tool):
    context, stream, name, invocation = fields
    seen = {}
    expected = []
    for i, launch in enumerate(launches):
        ids = (not context or str(launch.context) in context.split("|")) and (
            not stream or str(launch.stream) in stream.split("|")
        )
        literal = tool == "ncu" or not name
        if not ids or not (launch.name == name or not name if literal else name in launch.name):
            continue
        if tool == "nvprof":
            key = (launch.context, launch.stream, launch.name)
        else:
            key = (launch.name, *config(launch), context and launch.context, stream and launch.stream)
        seen[key] = seen.get(key, 0) + 1
        if not invocation or str(seen[key]) in invocation.split("|"):
            expected.append(i)
    if tool == "nvprof":
        kernel_filter = KernelFilter.from_nvprof(":".join(fields))
    else:
        prefix = "regex:" if tool == "ncu regex" and name else ""
        kernel_filter = KernelFilter.from_ncu(kernel_id=f"{context}:{stream}:{prefix}{name}:{invocation}")
    assert kernel_filter.select(launches) == expected


# NVTX push/pop expressions as regular expressions over the stack, one letter a range.

tokens = st.lists(st.sampled_from("ABC*+"), min_size=1, max_size=5).filter(lambda t: t[0] in "ABC" and t[-1] in "ABC")


@quick
@given(
    tokens,
    st.booleans(),
    st.booleans(),
    st.lists(st.text(alphabet="ABC", min_size=0, max_size=7), max_size=4),
)
def test_nvtx_push_pop(tokens, bottom, top, stacks):
    expression = "[" * bottom + "/".join(tokens) + ("]" if top else "/")
    as_regex = "".join({"*": ".*", "+": "."}.get(t, t) for t in tokens)
    as_regex = "^" * bottom + as_regex + "$" * top
    expected = [i for i, stack in enumerate(stacks) if re.search(as_regex, stack)]
    for make in (lambda s: Launch(push_pop={"": list(s)}), lambda s: Launch(region="/".join(s))):
        assert KernelFilter.from_ncu(nvtx_include=expression).select([make(s) for s in stacks]) == expected
    excluded = KernelFilter.from_ncu(nvtx_exclude=expression).select([Launch(push_pop={"": list(s)}) for s in stacks])
    assert excluded == [i for i in range(len(stacks)) if i not in expected]


@quick
@given(st.text(min_size=1, max_size=10), st.text(min_size=1, max_size=10))
def test_nvtx_escapes(name, domain):
    def escape(text):
        return re.sub(r"([@,\[\]/*+\\])", r"\\\1", text)

    expression = f"{escape(domain)}@{escape(name)}/"
    if expression.startswith("regex:"):
        return
    launches = [
        Launch(push_pop={domain: [name]}),
        Launch(push_pop={domain: [name + "x"]}),
        Launch(push_pop={domain + "x": [name]}),
    ]
    assert KernelFilter.from_ncu(nvtx_include=expression).select(launches) == [0]


# Anything may be typed: a filter or a FilterError, never anything else.

MAKERS = [
    KernelFilter,
    lambda t: KernelFilter("regex:" + t),
    lambda t: KernelFilter(regions=t, exclude_regions=["regex:" + t]),
    KernelFilter.from_nvprof,
    lambda t: KernelFilter.from_nvprof("::" + t),
    lambda t: KernelFilter.from_ncu(kernel_id=t),
    lambda t: KernelFilter.from_ncu(kernel_id="::" + t + ":1"),
    lambda t: KernelFilter.from_ncu(nvtx_include=t),
    lambda t: KernelFilter.from_ncu(nvtx_include="regex:" + t),
    lambda t: KernelFilter(mode=t),
    lambda t: KernelFilter(base=t),
]


@quick
@given(any_text, st.sampled_from(MAKERS))
def test_any_text(text, make):
    try:
        kernel_filter = make(text)
    except FilterError as error:
        assert error.hint
        return
    launch = Launch(name=text, region=text, context_name=text, push_pop={text: [text], "": [text]})
    assert kernel_filter.select([launch]) in ([], [0])
    assert "\n" not in kernel_filter.describe()


@quick
@given(st.text(max_size=80) | st.text(alphabet="_ZNStIE1f2abSK0_T()<>:{}[] operator", max_size=80))
def test_names_may_be_anything(text):
    assert isinstance(_core.demangle(text), str)
    assert isinstance(function_base(text), str)
    assert _core.qualified_name(text).endswith(function_base(text))
    assert nearest(text, [text, "k"]) != []


@quick
@given(st.lists(st.text(alphabet="a/\\b", min_size=1), min_size=1, max_size=5))
def test_region_path_round_trip(names):
    path = "/".join(name.replace("\\", "\\\\").replace("/", "\\/") for name in names)
    assert _core.split_region_path(path) == names
