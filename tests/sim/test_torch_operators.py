"""Operators of PyTorch as a source of launches' names, with the real torch: against torch.profiler, and against what the program knows."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

import cuptiprof
from cuptiprof import _core
from cuptiprof.data.enums import OPERATOR_SCOPES
from cuptiprof.errors import SessionError
from cuptiprof.session import torch_operators
from cuptiprof.session.sources import Sources, parse_sources
from cuptiprof.session.torch_inputs import UnknownInputs, tags_of
from cuptiprof.session.torch_operators import FollowingOperators, OperatorsWarning, UnknownTorch, layout_of
from cuptiprof.sim.sim_device import SimDevice

OURS = ["k*"]
ENTER, EXIT = torch.ops.profiler._record_function_enter_new, torch.ops.profiler._record_function_exit._RecordFunction


def profiled(level: str, **more: Any) -> cuptiprof.profile:
    return cuptiprof.profile(device="sim", activities=["kernel"], kernels=OURS, sources={"operators": level}, **more)


class Launching(torch.autograd.Function):
    """Launches a kernel forward and one in backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, name: str) -> torch.Tensor:
        ctx.name = name
        SimDevice().launch(f"{name}_forward")
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:  # type: ignore[override]
        SimDevice().launch(f"{ctx.name}_backward")
        return gradient * 2, None


def work() -> None:
    x = torch.ones(4, 4, requires_grad=True)
    with torch.profiler.record_function("mine"):
        y = torch.nn.functional.linear(x, x).relu()
        y = Launching.apply(y, "k")
    y.sum().backward()


def test_rows_are_the_events_of_torch_profiler(sim: SimDevice) -> None:
    """Both at once: names, nesting, sequence numbers and scopes of the same calls."""
    with (
        cuptiprof.profile(device="sim", sources="operators") as prof,
        torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as kineto,
    ):
        work()
        work()
    table = prof.result().operators
    names = dict(zip(table["instance"], table["name"], strict=True))
    first = table["name"].tolist().index("mine")
    start = int(table["start"][first])  # the one profiler begins and ends inside of the other
    found = Counter(
        (name, names.get(parent, ""), -1 if name.startswith("autograd::engine") else int(sequence) - 1, int(scope))
        for name, parent, sequence, scope, at in zip(
            table["name"], table["parent"], table["sequence"], table["scope"], table["start"], strict=True
        )
        if at >= start
    )
    begun = min(e.time_range.start for e in kineto.events() if e.name == "mine")
    events = [e for e in kineto.events() if e.time_range.start >= begun]
    assert len(events) > 50
    said = Counter(  # torch gives what its engine runs around a node that node's number
        (
            e.name,
            e.cpu_parent.name if e.cpu_parent else "",
            -1 if e.name.startswith("autograd::engine") else e.sequence_nr,
            e.scope,
        )
        for e in events
    )
    missing, more = said - found, found - said
    # torch leaves out an operator that calls itself once; the simulation's mode ends after torch's profiler did.
    assert not missing and all(m[0] == m[1] or m[0] == "PythonDispatchMode" for m in more), (missing, more)
    assert {OPERATOR_SCOPES[int(scope)] for scope in np.unique(table["scope"])} == {"function", "backward", "user"}


@pytest.mark.parametrize("level", ["full", "launch"])
def test_launches_have_their_operator(sim: SimDevice, level: str) -> None:
    with profiled(level) as prof:
        SimDevice().launch("k_outside")
        work()
        with torch.profiler.record_function("a/b"):
            SimDevice().launch("k_own")
    result = prof.result()
    kernels = result.kernels
    where = dict(zip(kernels["name"], kernels["operator"], strict=True))
    node = "LaunchingBackward"
    assert where["k_outside"] == "" and where["k_own"] == "a\\/b"
    assert where["k_forward"] == "mine/Launching"
    assert where["k_backward"] == f"autograd::engine::evaluate_function: {node}/{node}"
    backward = dict(zip(kernels["name"], kernels["backward"], strict=True))
    assert backward == {"k_outside": 0, "k_own": 0, "k_forward": 0, "k_backward": 1}
    rows = result.operators
    if level == "launch":
        assert len(rows) == 0 and not kernels["operator_instance"].any()
        return
    by_instance = {int(i): row for row, i in enumerate(rows["instance"])}
    for path, instance in zip(kernels["operator"], kernels["operator_instance"], strict=True):
        names = []
        while instance:
            row = by_instance[int(instance)]
            names.insert(0, rows["name"][row].replace("/", "\\/"))
            instance = rows["parent"][row]
        assert path == "/".join(names)
    assert not result.losses


def test_backward_finds_the_operator_that_made_its_node(sim: SimDevice) -> None:
    x = torch.ones(3, 3, requires_grad=True)
    with profiled("full") as prof:
        y = torch.nn.functional.linear(x, x)  # aten::linear, in which aten::t and aten::mm have nodes
        (x.exp() * y.detach()).sum().add(Launching.apply(y, "k").sum()).backward()
        for _ in range(3):
            (x * x).sum().backward()
    table = prof.result().operators
    names = dict(zip(table["instance"], table["name"], strict=True))
    pairs = Counter(
        (name, names.get(forward, ""))
        for name, scope, forward in zip(table["name"], table["scope"], table["forward"], strict=True)
        if scope == 1
    )
    assert pairs["ExpBackward0", "aten::exp"] == 1
    assert pairs["MmBackward0", "aten::mm"] == 1 and pairs["TBackward0", "aten::t"] == 1
    assert pairs["MulBackward0", "aten::mul"] == 4 and pairs["SumBackward0", "aten::sum"] == 5
    assert pairs["LaunchingBackward", "Launching"] == 1
    assert {name for name, forward in pairs if not forward} == {"torch::autograd::AccumulateGrad"}
    assert set(table["name"][table["backward"] == 0]).isdisjoint(n for n, _ in pairs)


@pytest.mark.parametrize("level", ["full", "launch"])
def test_what_ends_on_another_thread_is_open_no_more(sim: SimDevice, level: str) -> None:
    with profiled(level) as prof:
        outer = ENTER("outer", None)
        inner = ENTER("inner", None)
        SimDevice().launch("k_both")
        thread = threading.Thread(target=EXIT, args=(outer,))
        thread.start()
        thread.join()
        SimDevice().launch("k_inner")
        EXIT(inner)
        SimDevice().launch("k_none")
        (torch.ones(2) * 2).sum()
    result = prof.result()
    where = dict(zip(result.kernels["name"], result.kernels["operator"], strict=True))
    assert where["k_both"] == "outer/inner"
    assert (where["k_inner"], where["k_none"]) == ("inner", "")
    if level == "full":
        rows = result.operators
        ended = {name: rows["thread"][i] for i, name in enumerate(rows["name"]) if name in ("outer", "inner")}
        assert ended == dict.fromkeys(("outer", "inner"), threading.get_native_id()) and not rows["is_open"].any()


@pytest.mark.parametrize("level", ["full", "launch"])
def test_open_at_the_start_and_at_the_end(sim: SimDevice, level: str) -> None:
    before = ENTER("before", None)
    with profiled(level) as prof:
        SimDevice().launch("k_1")
        inside = ENTER("inside", None)
        SimDevice().launch("k_2")
        EXIT(before)
        SimDevice().launch("k_3")
    EXIT(inside)
    kernels = prof.result().kernels
    assert ["before" in path for path in kernels["operator"]] == [False] * 3
    assert ["inside" in path for path in kernels["operator"]] == [False, True, True]
    if level == "full":
        rows = prof.result().operators
        (row,) = [i for i, name in enumerate(rows["name"]) if name == "inside"]
        assert rows["is_open"][row] == 1 and "before" not in set(rows["name"])
    with profiled(level) as prof:  # what was open then is not now
        SimDevice().launch("k_4")
    assert "inside" not in prof.result().kernels["operator"][0]


def test_deeper_ones_than_are_followed_are_counted(sim: SimDevice) -> None:
    with profiled("full") as prof:
        open_ = [ENTER(f"level {i}", None) for i in range(200)]
        SimDevice().launch("k")
        while open_:
            EXIT(open_.pop())
        torch.ones(2).neg()
    result = prof.result()
    assert result.kernels["operator"][0].count("level") >= 120
    assert "aten::neg" in result.operators["name"] and result.losses["region_overflow"] >= 70
    assert not result.operators["is_open"].any()


@pytest.mark.parametrize("level", ["full", "launch", None])
def test_counters_of_launches_in_an_operator(sim: SimDevice, level: str | None) -> None:
    chosen = cuptiprof.KernelFilter(OURS, operators="Launching*")
    sources = {"operators": level} if level else None  # the filter sees to it itself
    with cuptiprof.profile(device="sim", kernels=chosen, metrics=["achieved_occupancy"], sources=sources) as prof:
        SimDevice().launch("k_outside")
        work()
    result = prof.result()
    assert sorted(result.metric_ranges["name"]) == ["k_backward", "k_forward"]
    assert sorted(result.kernels["name"]) == ["k_backward", "k_forward"]
    assert len(result.filter(cuptiprof.KernelFilter(operators="mine/*")).kernels) == 1
    assert len(result.filter(cuptiprof.KernelFilter(operators="regex:evaluate_function")).kernels) == 1
    assert len(result.filter(cuptiprof.KernelFilter(operators="aten::*")).kernels) == 0


def test_a_torch_that_is_imported_in_the_session() -> None:
    program = """
import cuptiprof
with cuptiprof.profile(device="sim", sources="operators") as prof:
    import torch
    torch.ones(3).exp()
result = prof.result()
assert "aten::exp" in set(result.operators["name"]), result.metadata
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_without_torch_nothing_is_said() -> None:
    program = """
import sys, warnings
warnings.simplefilter("error")
import cuptiprof
with cuptiprof.profile(device="sim", sources="operators") as prof:
    pass
assert "torch" not in sys.modules and len(prof.result().operators) == 0 and not any(
    type(finder).__name__ == "WhenImported" for finder in sys.meta_path)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_torch_that_cannot_be_observed_is_said_once(sim: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "knows_torch", lambda: False)
    monkeypatch.setattr(_core, "finds_torch", lambda path: False)
    prof = cuptiprof.profile(device="sim", sources="operators")
    with pytest.warns(OperatorsWarning, match=r"cannot be observed.*addGlobalCallback") as said:
        prof.start()
    prof.stop()
    assert len(said) == 1 and said[0].filename == __file__
    assert "cannot be observed" in prof.result().metadata["note"]


def test_an_unknown_version_is_tried_in_a_child_first(monkeypatch: pytest.MonkeyPatch) -> None:
    torch_operators.in_child()
    monkeypatch.setattr(_core, "knows_torch", lambda: False)
    monkeypatch.setattr(torch, "__version__", "3.0.1")
    children: list[None] = []
    monkeypatch.setattr(torch_operators, "in_child", lambda: children.append(None))
    with FollowingOperators() as following:
        pass
    assert children == [None] and following.note == ""


def test_the_child_that_dies_is_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["/nowhere"])
    with pytest.raises(UnknownTorch, match=r"ended with 1: .*No module"):
        torch_operators.in_child()


def test_shapes_and_types_are_those_of_torch_profiler(sim: SimDevice) -> None:
    x = torch.ones(2, 3)
    with (
        cuptiprof.profile(device="sim", sources={"operators": {"shapes": True}}) as prof,
        torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as kineto,
    ):
        torch.profiler.record_function("begin").__enter__()
        torch.cat([x, x], 1)
        torch.nn.functional.leaky_relu(x.double(), 0.5).softmax(1).sum((0, 1), True)
        torch.ones(1, 2, 1, 3, 1, 2, 1).bfloat16().add(3, alpha=2)
        torch.nn.functional.conv2d(torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3), None, 1, (1, 1))
        torch.zeros(2, dtype=torch.complex64).fill_(1j)
        torch.where(torch.ones(3, dtype=torch.bool), torch.ones(3, dtype=torch.int64), 2)
        torch.empty(0, 4).index_select(1, torch.tensor([1, 2], dtype=torch.int32))
        torch.nn.functional.dropout(x, 0.1, True)
    table = prof.result().operators
    first = table["name"].tolist().index("aten::cat")
    start = int(table["start"][first])
    found = Counter(
        (table["name"][i], table["shapes"][i], table["dtypes"][i])
        for i in range(len(table))
        if table["start"][i] >= start and table["name"][i] != "PythonDispatchMode"
    )
    assert ("aten::cat", "[[[2, 3], [2, 3]], []]", '["TensorList", "Scalar"]') in found
    said = Counter(
        (e.name(), json.dumps(e.shapes()), json.dumps(e.dtypes())) for e in kineto.profiler.kineto_results.events()
    )
    flat: Counter[tuple[str, str, str]] = Counter()
    for (name, shapes, types), count in found.items():
        # What torch gives Python has no shapes of lists of tensors; its traces do.
        one = [[] if any(isinstance(size, list) for size in shape) else shape for shape in json.loads(shapes)]
        flat[name, json.dumps(one), types] += count
    assert not flat - said, (flat - said, said - flat)


def test_operators_know_line_and_module_and_backward_that_of_the_forward(sim: SimDevice) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return Launching.apply(self.inner(x), "k")

    net = Net()
    with cuptiprof.profile(
        device="sim", activities=["kernel"], kernels=OURS, sources=["operators", "modules", "lines"]
    ) as prof:
        net(torch.ones(2, 4)).sum().backward()
    result = prof.result()
    table = result.operators
    by_name = {name: i for i, name in reversed(list(enumerate(table["name"])))}
    where = {name: table["module"][i] for name, i in by_name.items()}
    assert where["aten::linear"].endswith("inner") and where["AddmmBackward0"] == where["aten::linear"]
    assert where["LaunchingBackward"] == where["Launching"] != where["aten::linear"]
    assert set(result.kernels["module"]) == {where["Launching"]}
    assert where["aten::sum"] == ""
    assert table["line"][by_name["Launching"]].startswith(f"{__file__}:")
    ids = result.stacks["id"].tolist()
    assert len(ids) == len(set(ids))


def test_without_being_asked_there_are_no_shapes(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", sources="operators") as prof:
        torch.ones(3).neg()
    assert set(prof.result().operators["shapes"]) == {""}


def test_tags_that_contradict_each_other() -> None:
    tags = {b"aten::leaky_relu": [1, 3], b"aten::softmax": [1, 5, 0], b"aten::cat": [9, 5], b"aten::sum": [1, 9, 7, 0]}
    tags[b"aten::fill_"] = [1, 4]
    assert tags_of(tags.items()) == (1, 9, 1 << 3 | 1 << 5 | 1 << 7 | 1 << 4)
    for name, wrong in [
        (b"aten::cat", [5, 9]),
        (b"aten::sum", [2, 9, 7, 0]),
        (b"aten::fill_", [1, 3]),
        (b"aten::sum", []),
    ]:
        with pytest.raises(UnknownInputs):
            tags_of({**tags, name: wrong}.items())


def test_shapes_that_cannot_be_read_are_said(sim: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FollowingOperators, "no_shapes", "the sizes are in 0 places of a tensor")
    prof = cuptiprof.profile(device="sim", sources={"operators": {"shapes": True}})
    with pytest.warns(OperatorsWarning, match="the sizes are in 0 places"):
        prof.start()
    assert "shapes of the inputs" in prof.stop().metadata["note"]


def words(*values: int, size: int = 40) -> bytes:
    return b"".join(v.to_bytes(8, "little", signed=True) for v in (*values, *[0] * size)[:size])


def test_fields_that_are_nowhere_or_in_two_places() -> None:
    def calls(forward: int = 7, twice: bool = False) -> list[tuple[bytes, bytes, list[int]]]:
        def call(name: bytes, scope: int, sequence: int, forward: int) -> tuple[bytes, bytes, list[int]]:
            return name, words(99, 7, scope, sequence, 55, forward, sequence if twice else 12), []

        return [
            call(b"aten::mul", 0, 40, 0),
            call(b"aten::exp", 0, 41, 0),
            call(b"MulBackward0", 1, 40, forward),
            call(b"cuptiprof: trial", 7, -1, 0),
            call(b"aten::mul", 0, 77, 0),  # of backward
        ]

    layout = layout_of(7, calls(), 40, 41)
    assert (layout.thread, layout.scope, layout.sequence, layout.forward_thread) == (8, 16, 24, 40)
    with pytest.raises(UnknownTorch, match="the forward thread is in 0 places"):
        layout_of(7, calls(forward=8), 40, 41)
    with pytest.raises(UnknownTorch, match="the sequence number is in 2 places"):
        layout_of(7, calls(twice=True), 40, 41)
    with pytest.raises(UnknownTorch, match="of MulBackward0 nothing was said"):
        layout_of(7, [c for c in calls() if c[0] != b"MulBackward0"], 40, 41)


def test_levels_and_options() -> None:
    assert parse_sources("operators") == Sources(operators=2)
    assert parse_sources({"operators": "launch"}) == Sources(operators=1)
    assert parse_sources({"operators": {"shapes": True}}) == Sources(operators=2, shapes=True)
    for wrong, hint in [
        ({"operators": "ful"}, "full, launch"),
        ({"operators": {"shape": True}}, "shapes"),
        ({"operators": {"level": "none"}}, "full, launch"),
        ({"operators": {"level": "launch", "shapes": True}}, "full"),
        ("operator", "did you mean 'operators'"),
    ]:
        with pytest.raises(SessionError) as raised:
            parse_sources(wrong)  # type: ignore[arg-type]
        assert hint in str(raised.value.hint)


def test_operators_that_stay_open_over_many_sessions_take_no_room_for_good() -> None:
    """What is left open keeps a place of its thread's ring for its end; of an operator from an earlier session nobody hears it."""
    code = (
        "from contextlib import ExitStack; import torch, cuptiprof\n"
        "x, scopes, lost = torch.ones(3), ExitStack(), 0\n"
        "for _ in range(310):\n"  # more than a ring has room for
        "    with cuptiprof.profile(device='sim', sources='operators') as prof:\n"
        "        for _ in range(110): scopes.enter_context(torch.profiler.record_function('open'))\n"
        "        for _ in range(50): x + 1\n"
        "    lost += prof.result().losses['region_overflow']\n"
        "scopes.close(); print(lost)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "0\n"
