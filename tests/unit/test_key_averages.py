"""key_averages: torch's own EventList, made of the same events, gives the same tables word by word."""

from __future__ import annotations

import re
from typing import Any

import pytest
from conftest import DATA, trace_path
from report_results import make_result

import cuptiprof
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError

torch = pytest.importorskip("torch")

from cuptiprof.torch_profiler.function_events import function_events  # noqa: E402


def step_by_hand() -> Result:
    """Two steps: a region, operators in each other (one alone in one of its own name), backward on a thread of its own, copies,
    a kernel outside of everything, stacks."""
    frames = [("train.py", "main", 3, 0), ("train.py", "step", 9, 1), ("net.py", "Net.forward", 20, 2)]
    stacks = [
        {"id": i, "file": file, "function": name, "line": line, "parent": parent, "is_user": 1}
        for i, (file, name, line, parent) in enumerate(frames, 1)
    ]
    operators = [
        {"name": "aten::linear", "start": 1000, "end": 9000, "instance": 1, "thread": 5, "sequence": 3, "stack": 3,
         "shapes": "[[8, 4], [2, 4], [2]]"},
        {"name": "aten::addmm", "start": 2000, "end": 8000, "instance": 2, "thread": 5, "parent": 1, "sequence": 3, "stack": 3,
         "shapes": "[[2], [8, 4], [4, 2], [], []]"},
        {"name": "aten::to", "start": 9500, "end": 9900, "instance": 3, "thread": 5, "stack": 2, "shapes": "[[8], [], []]"},
        {"name": "aten::to", "start": 9600, "end": 9800, "instance": 4, "thread": 5, "parent": 3, "stack": 2,
         "shapes": "[[8], []]"},
        {"name": "aten::is_leaf", "start": 9900, "end": 9910, "instance": 5, "thread": 5, "stack": 2},
        {"name": "autograd::engine::evaluate_function: AddmmBackward0", "start": 20_000, "end": 30_000, "instance": 6,
         "thread": 6, "sequence": 3, "forward": 2, "backward": 1},
        {"name": "AddmmBackward0", "start": 21_000, "end": 29_000, "instance": 7, "thread": 6, "parent": 6, "sequence": 3,
         "forward": 2, "scope": 1, "backward": 1, "shapes": "[[8, 2]]"},
        {"name": "aten::mm", "start": 22_000, "end": 28_000, "instance": 8, "thread": 6, "parent": 7, "backward": 1,
         "shapes": "[[2, 8], [8, 4]]"},
        {"name": "mine", "start": 900, "end": 9950, "instance": 9, "thread": 5, "scope": 7},
        {"name": "aten::to", "start": 41_000, "end": 41_500, "instance": 10, "thread": 5, "stack": 1, "shapes": "[[8], [], []]"},
    ]  # fmt: skip
    return make_result(
        {
            "operators": operators,
            "stacks": stacks,
            "regions": [{"name": "fwd", "path": "fwd", "start": 950, "end": 9930, "instance": 1, "thread": 5}],
            "markers": [
                {"name": f"ProfilerStep#{i}", "start": i * 40_000, "end": i * 40_000 + 39_000, "category": "step", "id": i, "thread": 5}
                for i in range(2)
            ],
            "api_calls": [
                {"name": "cudaLaunchKernel", "start": 3000, "end": 3500, "thread": 5, "correlation_id": 1},
                {"name": "cudaMemcpyAsync", "start": 9650, "end": 9700, "thread": 5, "correlation_id": 2},
                {"name": "cudaLaunchKernel", "start": 23_000, "end": 23_400, "thread": 6, "correlation_id": 3},
                {"name": "cudaLaunchKernel", "start": 60_000, "end": 60_100, "thread": 5, "correlation_id": 4},
            ],
            "kernels": [
                {"name": "_Z4gemmPfS_i", "start": 5000, "end": 105_000, "operator_instance": 2, "correlation_id": 1, "stream": 7},
                {"name": "_Z4gemmPfS_i", "start": 106_000, "end": 176_000, "operator_instance": 8, "correlation_id": 3, "stream": 7},
                {"name": "lonely", "start": 200_000, "end": 200_777, "correlation_id": 4, "stream": 7},
                {"name": "of a region", "start": 210_000, "end": 210_777, "region_instance": 1, "correlation_id": 5, "stream": 7},
            ],
            "memcpys": [
                {"start": 105_000, "end": 105_500, "copy_kind": 1, "src_kind": 2, "dst_kind": 3, "operator_instance": 4,
                 "correlation_id": 2, "stream": 7},
            ],
        }
    )  # fmt: skip


@pytest.fixture(scope="module", params=["by hand", "train-v100", "alexnet-a100", "simple-add", "rank0"])
def both(request: Any) -> tuple[Result, Any]:
    """Ours and torch's own events of it."""
    files = {"rank0": DATA / "ranks" / "rank0.json.gz"}
    name = request.param
    result = step_by_hand() if name == "by hand" else cuptiprof.open(files.get(name) or trace_path(name))
    return result, function_events(result)


def assert_alike(ours: str, theirs: str, in_any_order: bool = False) -> None:
    """Word by word; the last digit may differ, since torch adds up in float64."""
    number = re.compile(r"-?\d+\.\d+")
    if in_any_order:  # what is alike to the ns is not to the last bit of a float64
        ours, theirs = ("\n".join(sorted(text.splitlines())) for text in (ours, theirs))
    assert number.sub("#", ours) == number.sub("#", theirs)
    for mine, their in zip(number.findall(ours), number.findall(theirs), strict=True):
        assert len(mine) == len(their) and abs(float(mine) - float(their)) < 1.5 * 10.0 ** -len(mine.split(".")[1])


@pytest.mark.parametrize("by_shape,stack_n", [(False, 0), (True, 0), (False, 1), (True, 2)])
def test_as_torch_makes_them(both: tuple[Result, Any], by_shape: bool, stack_n: int) -> None:
    result, events = both
    theirs = events.key_averages(group_by_input_shapes=by_shape, group_by_stack_n=stack_n)
    for sort_by in (None, "self_cuda_time_total"):
        ours = result.key_averages(group_by_input_shape=by_shape, group_by_stack_n=stack_n)
        key = sort_by.replace("cuda", "device") if sort_by else None
        options = {"row_limit": -1 if sort_by else 25, "max_name_column_width": 40, "header": "both"}
        # With stacks and operations torch's cells stand in each other's columns: compared without the latter.
        theirs._with_flops = not stack_n
        ours._with_flops = not stack_n
        assert_alike(ours.table(sort_by=sort_by, **options), theirs.table(sort_by=key, **options), sort_by is not None)
    of_top = {"top_level_events_only": True, "time_unit": "ms"}
    assert_alike(ours.table(**of_top), theirs.table(**of_top))
    for row, their in zip(ours, theirs, strict=True):
        assert (row.key, row.count, row.input_shapes, list(row.stack)) == (
            their.key, their.count, their.input_shapes, list(their.stack)
        )  # fmt: skip
        assert (row.scope, row.device_type, row.flops) == (their.scope, their.device_type, their.flops)


def test_what_lies_alone_in_its_own_name_counts_once() -> None:
    rows = {row.key: row for row in step_by_hand().key_averages()}
    assert rows["aten::to"].count == 2 and rows["aten::to"].self_device_time_total == 0.5
    merged = make_result({"operators": [
        {"name": "aten::to", "start": 0, "end": 9000, "instance": 1}, {"name": "aten::to", "start": 1000, "end": 5000, "instance": 2},
    ]}).key_averages()  # fmt: skip
    assert [(row.key, row.count, row.self_cpu_time_total) for row in merged] == [("aten::to", 1, 9.0)]


def test_operations_stand_under_their_heading_beside_stacks() -> None:
    table = step_by_hand().key_averages(group_by_stack_n=2).table()
    heading = next(line for line in table.splitlines() if "Source Location" in line)
    row = next(line for line in table.splitlines() if "aten::addmm" in line)
    assert row.count("net.py(20): Net.forward") == 1
    assert re.search(r"128\.000 *$", row) and heading.rstrip().endswith("Total FLOPs")


def test_sorted_by_what_was_asked() -> None:
    averages = step_by_hand().key_averages()
    largest = max(averages, key=lambda row: row.device_time_total)
    assert averages.table(sort_by="cuda_time_total", row_limit=1).splitlines()[3].strip().startswith(largest.key)


def test_units_and_old_names() -> None:
    average = next(row for row in step_by_hand().key_averages() if row.key == "aten::addmm")
    assert average.self_cuda_time_total == average.self_device_time_total == average.cuda_time == 100.0
    assert average.cpu_time_total_str == "6.000us" and average.self_cpu_time_total == 5.5
    total = step_by_hand().key_averages().total_average()
    assert total.key == "Total" and total.count == sum(row.count for row in step_by_hand().key_averages())


@pytest.mark.parametrize("key", ["nonsense", "__class__", "stack", ""])
def test_unknown_sort_keys(key: str) -> None:
    with pytest.raises(ResultError, match="cannot sort by"):
        step_by_hand().key_averages().table(sort_by=key)
    with pytest.raises(ResultError, match="self_device_time_total"):
        step_by_hand().key_averages().table(sort_by="self_cuda_time_totl")


def test_bad_arguments() -> None:
    with pytest.raises(ResultError, match="time_unit"):
        step_by_hand().key_averages().table(time_unit="fortnights")
    with pytest.raises(ResultError, match="negative"):
        step_by_hand().key_averages(group_by_stack_n=-1)
    assert make_result({}).key_averages().table() == ""


@pytest.mark.parametrize(
    "metric,of", [("self_cpu_time_total", "self_cpu_time_total"), ("self_cuda_time_total", "self_device_time_total")]
)
def test_stacks_as_torch_exports_them(metric: str, of: str, tmp_path: Any) -> None:
    result = step_by_hand()
    result.export_stacks(tmp_path / "ours", metric)
    events = function_events(result)
    expected: dict[str, float] = {}
    for event in events:
        if event.stack:
            line = ";".join(entry.replace(" ", "_") for entry in reversed(event.stack))
            expected[line] = expected.get(line, 0) + getattr(event, of)
    ours = dict(line.rsplit(" ", 1) for line in (tmp_path / "ours").read_text().splitlines())
    assert ours == {line: str(int(us)) for line, us in expected.items() if us >= 1} and len(ours) >= 1


def test_stacks_need_stacks(tmp_path: Any) -> None:
    with pytest.raises(ResultError, match="no stacks of operators"):
        make_result({"operators": [{"name": "aten::mm", "start": 0, "end": 5, "instance": 1}]}).export_stacks(
            tmp_path / "s"
        )
    with pytest.raises(ResultError, match="unknown metric"):
        step_by_hand().export_stacks(tmp_path / "s", "self_xpu_time_total")


def test_memory_of_the_caching_allocator() -> None:
    given, asked_back = 1, 2
    result = make_result(
        {
            "operators": [
                {"name": "aten::linear", "start": 0, "end": 9000, "instance": 1},
                {"name": "aten::empty", "start": 1000, "end": 2000, "instance": 2, "parent": 1},
            ],
            "allocator_events": [
                {"timestamp": 1000, "bytes": 4096, "action": given, "operator_instance": 2},
                {"timestamp": 3000, "bytes": 512, "action": given, "operator_instance": 1},
                {
                    "timestamp": 3000,
                    "bytes": 1 << 20,
                    "action": 4,
                    "operator_instance": 1,
                },  # CUDA's, not the operator's
                {"timestamp": 5000, "bytes": 1024, "action": asked_back, "operator_instance": 1},
                {"timestamp": 99_000, "bytes": 4096, "action": asked_back},
            ],
        }
    )
    averages = result.key_averages()
    rows = {row.key: (row.self_cuda_memory_usage, row.device_memory_usage, row.count) for row in averages}
    assert rows == {"aten::linear": (-512, 3584, 1), "aten::empty": (4096, 4096, 1), "[memory]": (-4096, -4096, 1)}
    line = next(line for line in averages.table().splitlines() if "aten::linear" in line)
    assert line.split()[-5:] == ["3.50", "KB", "-512", "B", "1"] and "Self CUDA Mem" in averages.table()
    assert (
        "Mem"
        not in make_result({"operators": [{"name": "aten::mm", "start": 0, "end": 5, "instance": 1}]})
        .key_averages()
        .table()
    )


def test_operators_stand_where_their_launches_do() -> None:
    """Where only launches have stacks: an operator, those around it, and what backward does for it."""
    result = make_result(
        {
            "stacks": [{"id": 1, "file": "train.py", "function": "step", "line": 4, "is_user": 1}],
            "operators": [
                {"name": "mine", "start": 0, "end": 9000, "instance": 1, "scope": 7},
                {"name": "aten::linear", "start": 100, "end": 8000, "instance": 2, "parent": 1},
                {"name": "aten::t", "start": 200, "end": 300, "instance": 3, "parent": 2},
                {"name": "aten::addmm", "start": 400, "end": 7000, "instance": 4, "parent": 2},
                {
                    "name": "AddmmBackward0",
                    "start": 500,
                    "end": 800,
                    "instance": 5,
                    "thread": 2,
                    "forward": 4,
                    "scope": 1,
                },
                {"name": "aten::mm", "start": 600, "end": 700, "instance": 6, "thread": 2, "parent": 5},
            ],
            "kernels": [{"name": "k", "start": 10_000, "end": 20_000, "operator_instance": 4, "stack": 1}],
        }
    )
    stacks = {row.key: row.stack for row in result.key_averages(group_by_stack_n=1)}
    here = ("train.py(4): step",)
    assert stacks == {"mine": (), "aten::linear": here, "aten::t": here, "aten::addmm": here, "AddmmBackward0": here,
                      "aten::mm": here, "k": ()}  # fmt: skip
