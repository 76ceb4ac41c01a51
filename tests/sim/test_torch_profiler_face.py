"""``cuptiprof.torch_profiler`` as somebody who knows torch.profiler would try it: what is taken, what is refused, and how."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import cuptiprof
import cuptiprof.torch_profiler as profiler
from cuptiprof.errors import ResultError, SessionError

CPU, CUDA = profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA


def work() -> None:
    torch.ones(4, 4) @ torch.ones(4, 4)


def test_names_are_torchs_own() -> None:
    assert profiler.ProfilerActivity is torch.profiler.ProfilerActivity
    assert profiler.record_function is torch.profiler.record_function
    missing = set(torch.profiler.__all__) - set(dir(profiler))
    assert missing == {"kineto_available"}
    with pytest.raises(AttributeError, match="doctor"):
        _ = profiler.kineto_available


@pytest.mark.parametrize(
    "options,said",
    [
        ({"activities": []}, "ProfilerActivity.CPU"),
        ({"activities": ["CPUU"]}, "single kinds"),
        ({"activities": [torch.profiler.ProfilerActivity.XPU]}, "torch.profiler has the others"),
        ({"activities": [CUDA, {CUDA: ["GPU_MEMCPY"]}]}, "given twice"),
        ({"activities": [{CUDA: ["GPU_MEMCPI"]}]}, "did you mean 'GPU_MEMCPY'"),
        ({"on_trace_ready": print, "on_ready": print}, "give one of them"),
        ({"experimental_config": object()}, "metrics= and strategy="),
    ],
)
def test_what_is_not_there_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(SessionError) as refused:
        profiler.profile(device="sim", **options)
    assert said in str(refused.value)


def test_cycles_added_up() -> None:
    """acc_events, as torch's own: calls of all cycles until now, in on_trace_ready too; its events of all of them."""
    said: list[list[Any]] = []
    for module, options in ((profiler, {"device": "sim"}), (torch.profiler, {})):
        counts: list[Any] = []

        def tell(prof: Any, counts: list[Any] = counts) -> None:
            counts.append({r.key: r.count for r in prof.key_averages() if r.key in ("aten::matmul", "aten::ones")})

        schedule = module.schedule(wait=1, warmup=1, active=1, repeat=3)
        with module.profile(
            activities=[torch.profiler.ProfilerActivity.CPU],
            schedule=schedule,
            on_trace_ready=tell,
            acc_events=True,
            **options,
        ) as prof:
            for step in range(10):
                for _ in range(step):
                    work()
                prof.step()
        tell(prof)
        counts.append(sum(event.name == "aten::matmul" for event in prof.events()))
        said.append(counts)
    assert said[0] == said[1]
    assert [cycle["aten::matmul"] for cycle in said[0][:-1]] == [2, 2 + 5, 2 + 5 + 8, 2 + 5 + 8] and said[0][-1] == 15


def test_a_session_that_begins_again_adds_to_what_was() -> None:
    prof = profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], device="sim", acc_events=True)
    shares = []
    for times in (1, 2, 3):
        prof.start()
        for _ in range(times):
            work()
        prof.stop()
        averages = {row.key: row for row in prof.key_averages()}
        shares.append((averages["aten::matmul"].count, averages["aten::matmul"].cpu_time_total))
        assert len(prof.result().operators) and averages["aten::matmul"].count == sum(range(times + 1))
    assert [count for count, _ in shares] == [1, 3, 6] and shares[0][1] < shares[1][1] < shares[2][1]


def test_slips_of_keywords() -> None:
    with pytest.raises(TypeError, match="did you mean 'with_stack'"):
        profiler.profile(with_stak=True)
    with pytest.raises(TypeError, match="'nonsense_of_mine'"):
        profiler.profile(nonsense_of_mine=1)


def test_activities() -> None:
    with profiler.profile(device="sim", activities=[CPU]) as prof:
        work()
    assert len(prof.result().operators) and not len(prof.result().kernels)
    with profiler.profile(device="sim", activities=[CUDA]) as prof:
        work()
    assert not len(prof.result().operators) and len(prof.result().kernels)
    with profiler.profile(device="sim", activities=[{CUDA: ["CONCURRENT_KERNEL"]}]) as prof:
        work()
    assert len(prof.result().kernels) and not len(prof.result().api_calls)


def test_our_keywords_are_taken_besides() -> None:
    config = torch._C._profiler._ExperimentalConfig(
        profiler_metrics=["sm__cycles_elapsed.avg"], profiler_measure_per_kernel=True
    )
    with profiler.profile(device="sim", experimental_config=config, sources=["stacks"], kernels="*gemm*") as prof:
        work()
    result = prof.result()
    assert set(result.counters) == {"sm__cycles_elapsed.avg"} and result.kernels["stack"].all()
    assert len(result.kernels) == 1 and len(result.operators)


def test_metadata_and_names_of_cycles(tmp_path: Path) -> None:
    names = iter(["first", "second"])
    prof = profiler.profile(device="sim", with_stack=True, custom_trace_id_callback=lambda: next(names))
    prof.preset_metadata_json("preset", "[1]")
    with prof:
        work()
        prof.add_metadata("author", 'me "and" you')
        prof.add_metadata_json("rank", '{"a": null}')
        prof.add_metadata_json("traceEvents", "1")
        with pytest.raises(SessionError, match="not JSON"):
            prof.add_metadata_json("bad", "{")
    assert prof.get_trace_id() == "first"
    prof.export_chrome_trace(tmp_path / "t.json", use_python_export=True)
    text = (tmp_path / "t.json").read_text()
    data = json.loads(text)
    assert (data["author"], data["preset"], data["rank"], data["with_stack"]) == ('me "and" you', [1], {"a": None}, 1)
    assert data["trace_id"] == "first" and isinstance(data["traceEvents"], list)
    assert text.index('"rank": 0') < text.index('"rank": {')  # HTA takes the first


def test_schedules_of_torch_and_of_the_user() -> None:
    def own(step: int) -> Any:
        return torch.profiler.ProfilerAction.RECORD_AND_SAVE if step % 2 else profiler.ProfilerAction.NONE

    seen = []
    with profiler.profile(
        device="sim", schedule=own, on_trace_ready=lambda p: seen.append(len(p.result().kernels))
    ) as prof:
        for _ in range(4):
            work()
            prof.step()
        assert prof.step_num == 4 and prof.current_action is profiler.ProfilerAction.NONE
    assert len(seen) == 2 and all(seen)
    with (
        pytest.raises(SessionError, match=r"ProfilerAction\.NONE"),
        profiler.profile(device="sim", schedule=lambda step: "RECORD"),
    ):
        pass


def test_a_handler_of_torchs_own(tmp_path: Path) -> None:
    with profiler.profile(device="sim", on_trace_ready=torch.profiler.tensorboard_trace_handler(str(tmp_path))):
        work()
    (file,) = tmp_path.glob("*.pt.trace.json")
    assert len(cuptiprof.open(file).kernels)


def test_an_execution_trace_observer_runs_with_the_recording() -> None:
    said: list[str] = []

    class Observer:
        def start(self) -> None:
            said.append("start")

        def stop(self) -> None:
            said.append("stop")

    schedule = profiler.schedule(wait=1, warmup=0, active=1, repeat=1)
    with profiler.profile(device="sim", schedule=schedule, execution_trace_observer=Observer()) as prof:
        for _ in range(3):
            said.append("step")
            prof.step()
    assert said[:4] == ["step", "start", "step", "stop"] and said.count("start") == 1


def test_nothing_of_the_session_is_replaced_unseen() -> None:
    """The face is a session: a private method of the same name would take the place of the session's own."""
    both = set(vars(profiler.profile)) & set(vars(cuptiprof.profile))
    assert not [name for name in both if name.startswith("_") and not name.startswith("__")]


def test_toggling() -> None:
    with profiler.profile(device="sim") as prof:
        prof.toggle_collection_dynamic(False, [CPU, CUDA])
        work()
        prof.toggle_collection_dynamic(True, [CPU, CUDA])
        with pytest.raises(SessionError, match="pauses as a whole"):
            prof.toggle_collection_dynamic(False, [CUDA])
    assert not len(prof.result().kernels)


def test_refused_methods() -> None:
    with profiler.profile(device="sim") as prof:
        work()
    with pytest.raises(ResultError, match="no history of the allocator"):
        prof.export_memory_timeline("x.html")
    with pytest.raises(SessionError, match="not a GPU"):
        prof.export_memory_timeline("x.html", "cpu")
    with pytest.raises(ResultError, match=r"\.json\.gz"):
        prof.export_memory_timeline("x.raw.json.gz")
    with pytest.raises(SessionError, match="overloads"):
        prof.key_averages(group_by_overload_name=True)
    events = prof.events()
    assert type(events).__module__ == "torch.autograd.profiler_util" and any(e.name == "aten::mm" for e in events)


def test_shapes_of_lists_of_events() -> None:
    """As torch says them: twice, once without those in lists."""
    x = torch.ones(2, 3)
    options: dict[str, Any] = {"activities": [profiler.ProfilerActivity.CPU], "record_shapes": True}
    with profiler.profile(device="sim", **options) as mine, torch.profiler.profile(**options) as theirs:
        torch.cat([x, x], 1)
    for events in (mine.events(), theirs.events()):
        *_, event = (e for e in events if e.name == "aten::cat")  # while it starts, torch.profiler has some of its own
        assert (event.input_shapes, event.structured_input_shapes) == ([[], []], [[[2, 3], [2, 3]], []])


def test_without_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import cuptiprof, cuptiprof.torch_profiler as profiler\n"
        "from cuptiprof.sim.sim_device import SimDevice\n"
        "with profiler.profile(device='sim', activities=[profiler.ProfilerActivity.CUDA]) as prof:\n"
        "    with profiler.record_function('mine'): SimDevice().launch('k')\n"
        "rows = {row.key: row.count for row in prof.key_averages()}\n"
        "print(rows['mine'], rows['k'])\n"
        "try: prof.events()\n"
        "except cuptiprof.CuptiprofError as e: print(e)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("1 1\n") and "torch is not installed" in done.stdout
