"""The harness on the simulated device, where the true times are known: what each strategy measures."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from itertools import count
from queue import SimpleQueue

import numpy as np
import pytest

import cuptiprof
from cuptiprof.bench import Count, Cpu, Event, Graph, Kernel, Measurement, Wall
from cuptiprof.device.devices import SimulatedDevice
from cuptiprof.errors import BenchError, MetricError
from cuptiprof.sim.sim_device import Flag, Op


@pytest.fixture
def machine() -> Iterator[SimulatedDevice]:
    device = SimulatedDevice(virtual_clock=True)
    yield device
    device.sim.clear_faults()


def measure(device: SimulatedDevice, function, **options) -> Measurement:  # type: ignore[no-untyped-def]
    return cuptiprof.bench(function, device=device, **options)


def test_kernel_times_are_those_of_the_records(machine: SimulatedDevice) -> None:
    sim = machine.sim

    def work() -> None:
        sim.launch("_Z3addPf", duration_ns=7_000)
        sim.launch("_Z3mulPf", duration_ns=2_000, count=2)
        sim.call(Op.MEMSET, bytes=1 << 10, duration_ns=500, flags=Flag.ASYNC)

    m = measure(machine, work)
    pieces = {k.name: (k.calls, k.ns) for k in m.kernels}
    assert pieces["_Z3addPf"] == (1, 7_000) and pieces["_Z3mulPf"] == (2, 4_000) and pieces["[memset]"][0] == 1
    total = sum(ns for _, ns in pieces.values())
    assert m.median == total and (m.interval.low, m.interval.high) == (
        total - 0.5,
        total + 0.5,
    )  # its clock steps by 1 ns
    assert (m.samples == total).all() and m.name == "work" and m.strategy == "kernel"
    assert not m.discarded and m.simulated
    assert [k.ns for k in m.kernels] == sorted((k.ns for k in m.kernels), reverse=True)


def test_sum_and_span_differ_where_kernels_overlap(machine: SimulatedDevice) -> None:
    sim = machine.sim

    def work() -> None:
        sim.launch("a", duration_ns=100_000, stream=7)
        sim.launch("b", duration_ns=100_000, stream=8)

    by_sum, by_span = measure(machine, work), measure(machine, work, strategy=Kernel(span=True))
    assert by_sum.median == 200_000
    assert 100_000 < by_span.median < 110_000 == pytest.approx(by_span.median, rel=0.1)
    assert np.median(by_sum.span) == by_span.median
    assert any("2 streams" in n and "span" in n for n in by_sum.notes)


def test_gaps_of_the_host_are_in_the_span_only(machine: SimulatedDevice) -> None:
    sim = machine.sim

    def work() -> None:
        sim.launch("a", duration_ns=5_000)
        sim.synchronize()
        sim.advance(sim.now() + 20_000)
        sim.launch("b", duration_ns=5_000)

    m = measure(machine, work)
    assert m.median == 10_000
    assert np.median(m.span) > 30_000
    assert any("idle" in n for n in m.notes) and any("synchronises" in n for n in m.notes)


def test_events_enclose_the_call_and_short_calls_are_batched(machine: SimulatedDevice) -> None:
    sim = machine.sim
    m = measure(machine, lambda: sim.launch("k", duration_ns=8_000), strategy="event")
    assert m.batch > 1
    assert m.median == pytest.approx(8_000, rel=0.001)
    long = measure(machine, lambda: sim.launch("k", duration_ns=900_000), strategy=Event())
    assert long.batch == 1 and long.median == pytest.approx(900_000, rel=0.01)


@pytest.mark.parametrize("strategy", ["event", "graph"])
@pytest.mark.parametrize("ns", [500, 2_000, 40_000])
def test_events_see_the_gpus_time_of_short_functions_not_the_hosts(
    machine: SimulatedDevice, strategy: str, ns: int
) -> None:
    """A launch takes the simulated host 2 us, and 3 us more until the kernel begins."""
    sim = machine.sim
    m = measure(machine, lambda: sim.launch("k", duration_ns=ns), strategy=strategy)
    assert m.median == pytest.approx(ns, rel=0.01) and m.batch * ns >= 200_000
    assert not [n for n in m.notes if "host" in n]


def test_a_stream_that_runs_dry_is_said(machine: SimulatedDevice) -> None:
    sim = machine.sim

    def launches_for_long() -> None:  # more than may be pending
        for _ in range(1_500):
            sim.launch("k", duration_ns=1_000)

    m = measure(machine, launches_for_long, strategy="event", stop=Count(5))
    assert m.median == pytest.approx(1_500 * 2_000, rel=0.01)  # the host's pace
    assert any("waits for the host" in n for n in m.notes), m.notes

    def synchronises() -> None:
        sim.launch("k", duration_ns=1_000)
        sim.synchronize()
        sim.launch("k", duration_ns=1_000)

    assert any("waits for the host" in n for n in measure(machine, synchronises, strategy="event").notes)


def test_a_host_that_is_slow_now_and_then_is_not_in_the_time_of_events(machine: SimulatedDevice) -> None:
    sim, calls = machine.sim, count()

    def work() -> None:
        if next(calls) % 1_000 == 999:
            sim.advance(sim.now() + 3_000_000)
        sim.launch("k", duration_ns=20_000)

    m = measure(machine, work, strategy="event")
    assert (m.samples < 20_100).all()
    assert all("host" in d.reason for d in m.discarded)


def test_events_that_do_not_enclose_the_work_are_refused(machine: SimulatedDevice) -> None:
    sim = machine.sim
    with pytest.raises(BenchError, match="stream") as caught:
        measure(machine, lambda: sim.launch("k", duration_ns=90_000, stream=9), strategy="event")
    assert "kernel" in caught.value.hint


def test_a_cold_sample_is_one_call_after_a_write_larger_than_the_l2(machine: SimulatedDevice) -> None:
    sim = machine.sim
    for strategy in ("kernel", "event"):
        before = sim.truth()["memsets"]
        m = measure(machine, lambda: sim.launch("k", duration_ns=8_000), strategy=strategy, l2="cold")
        assert m.batch == 1 and m.l2 == "cold"
        assert sim.truth()["memsets"] - before == len(m.samples)
        assert m.median == pytest.approx(8_000, rel=0.05)
        assert all(k.name != "[memset]" for k in m.kernels)


def test_the_write_of_a_cold_sample_is_over_when_the_call_begins(machine: SimulatedDevice) -> None:
    """In whatever stream the call works."""
    from cuptiprof.bench.sampling import MeasuredCall
    from cuptiprof.bench.sampling.strategy import before_sample
    from cuptiprof.device.sim_gpu import SimGpu

    gpu = SimGpu(machine)
    before_sample(gpu, MeasuredCall("f", lambda: None), True, False)
    event = gpu.events(1)[0]
    began = gpu.now()
    gpu.record(event)
    assert 0 < gpu.sim.event_time(event) <= began


def test_a_graph_is_captured_once_and_replayed(machine: SimulatedDevice) -> None:
    sim, calls = machine.sim, count()

    def work() -> None:
        next(calls)
        for _ in range(3):
            sim.launch("k", duration_ns=30_000)

    m = measure(machine, work, strategy=Graph())
    assert m.median == pytest.approx(90_000, rel=0.05)
    assert m.batch == 12  # it fills a millisecond
    traced, captured = 1, 1 + 12
    assert next(calls) == m.warmup_calls + traced + captured < len(m.samples) * m.batch


def test_host_time_is_until_the_call_returns_and_wall_time_until_the_gpu_has_finished(machine: SimulatedDevice) -> None:
    sim = machine.sim
    host = measure(machine, lambda: sim.launch("k", duration_ns=500_000), strategy=Cpu())
    wall = measure(machine, lambda: sim.launch("k", duration_ns=500_000), strategy=Wall())
    assert host.median == 2_000  # what a call costs on the simulated host
    assert 500_000 < wall.median < 510_000


@pytest.mark.parametrize(("strategy", "inside"), [("cpu", 0), ("wall", 2_000)])
def test_nothing_but_the_function_is_in_the_time(machine: SimulatedDevice, strategy: str, inside: int) -> None:
    """Every call of the simulated API moves the virtual clock: an empty function shows all that the harness adds."""
    m = measure(machine, lambda: None, strategy=strategy, max_seconds=0.05)
    assert m.samples.min() == m.samples.max() == inside  # wall time is that of one wait


def test_between_the_readings_of_the_clock_only_the_function_runs(machine: SimulatedDevice) -> None:
    from cuptiprof.bench.sampling import MeasuredCall
    from cuptiprof.device.sim_gpu import SimGpu

    gpu, order = SimGpu(machine), []
    real_now, real_synchronize = gpu.now, gpu.synchronize
    gpu.now = lambda: order.append("now") or real_now()  # type: ignore[method-assign,func-returns-value]
    gpu.synchronize = lambda: order.append("sync") or real_synchronize()  # type: ignore[method-assign,func-returns-value]
    call = MeasuredCall("f", lambda: order.append("f"), setup=lambda: order.append("setup"), label="x")
    Cpu().rounds(gpu, [call], 2, False, lambda: None)
    assert order == ["setup", "sync", "now", "f", "now"] * 2 + ["sync"]
    order.clear()
    Wall().rounds(gpu, [call], 1, False, lambda: None)
    assert order == ["setup", "sync", "now", "f", "sync", "now", "sync"]


def test_setup_runs_before_each_sample_and_is_not_in_the_time(machine: SimulatedDevice) -> None:
    sim, state = machine.sim, {"fresh": False, "stale": 0}

    def setup() -> None:
        state["fresh"] = True
        sim.launch("prepare", duration_ns=90_000)

    def work() -> None:  # changes its input
        state["stale"] += not state["fresh"]
        state["fresh"] = False
        sim.launch("k", duration_ns=4_000)

    for strategy in ("kernel", "event", "wall"):
        m = measure(machine, work, setup=setup, strategy=strategy)
        assert state["stale"] == 0 and m.batch == 1
        assert all(k.name == "k" for k in m.kernels)
        assert m.median < 20_000
    counted = measure(machine, work, setup=setup, metrics="inst_executed,l2_tex_hit_rate,flop_count_sp,dram_read_bytes")
    assert state["stale"] == 0 and not any(np.isnan(c.value) for c in counted.counters)


def test_counters_are_those_of_one_call(machine: SimulatedDevice) -> None:
    sim = machine.sim
    sim.set_counter("smsp__inst_executed", 1000.0)
    sim.set_counter("dram__bytes_read", 3e6)
    sim.set_counter("dram__bytes_write", 1e6)

    def work() -> None:
        sim.launch("a", duration_ns=10_000, count=2)

    one = measure(machine, work, metrics=["inst_executed"], flops=4e6, bytes="measured", dtype="float32")
    assert one.counter("inst_executed") == 2000
    assert [c.name for c in one.counters] == ["inst_executed"]
    assert one.roofline is not None
    assert one.roofline.flop_rate == pytest.approx(4e6 / 20e-6)
    assert one.roofline.peak_flop_rate == 67e12 and one.roofline.peak_byte_rate == 3.35e12
    assert one.roofline.bound == "memory"
    assert one.roofline.share == pytest.approx(one.roofline.byte_rate / 3.35e12)
    assert one.roofline.intensity == pytest.approx(4e6 / one.roofline.bytes)
    assert one.median == 20_000  # counting came after timing


def test_operations_can_be_measured(machine: SimulatedDevice) -> None:
    sim = machine.sim
    m = measure(machine, lambda: sim.launch("k", (264, 1, 1), (256, 1, 1), duration_ns=50_000), flops="measured")
    assert m.roofline is not None and m.roofline.flops > 0
    assert m.roofline.flop_rate == pytest.approx(m.roofline.flops / 50e-6)
    assert m.roofline.share == pytest.approx(m.roofline.flop_rate / m.roofline.peak_flop_rate)
    assert not m.counters  # the preset was the harness's wish


def test_an_autotuner_that_runs_first_is_not_in_the_numbers(machine: SimulatedDevice) -> None:
    sim, calls = machine.sim, count()

    def work() -> None:
        n = next(calls)
        if n == 0:
            for config in range(20):
                sim.launch(f"tune_{config}", duration_ns=400_000)
        if n == 40:  # and once more, when everybody thought it was over
            sim.launch("tune_late", duration_ns=1_000_000)
        sim.launch("best", duration_ns=9_000)

    m = measure(machine, work)
    assert m.first_call_ns > 8_000_000
    assert (m.samples == 9_000).all() and [k.name for k in m.kernels] == ["best"]
    assert [d.reason for d in m.discarded] == ["launched other kernels than the rest"]


def test_calls_that_differ_for_good_are_kept_and_said(machine: SimulatedDevice) -> None:
    sim, calls = machine.sim, count()
    m = measure(machine, lambda: sim.launch(f"k{next(calls) % 2}", duration_ns=9_000))
    assert not m.discarded and any("do not all launch the same" in n for n in m.notes)


@pytest.mark.parametrize("strategy", ["kernel", "event", "graph"])
def test_a_function_that_launches_nothing_is_refused(machine: SimulatedDevice, strategy: str) -> None:
    with pytest.raises(BenchError, match="nothing to do") as caught:
        measure(machine, lambda: None, strategy=strategy)
    assert "cpu" in caught.value.hint


def test_work_of_another_thread_is_not_taken_for_the_functions(machine: SimulatedDevice) -> None:
    sim = machine.sim

    def elsewhere() -> None:
        with cuptiprof.region("own"):
            sim.launch("k", duration_ns=5_000)

    asked: SimpleQueue[bool] = SimpleQueue()
    done: SimpleQueue[None] = SimpleQueue()

    def serve() -> None:
        while asked.get():
            elsewhere()
            done.put(None)

    thread = threading.Thread(target=serve)
    thread.start()

    def work() -> None:
        asked.put(True)
        done.get()

    def both() -> None:
        sim.launch("mine", duration_ns=3_000)
        work()

    try:
        with pytest.raises(BenchError, match=r"thread"):
            measure(machine, work)
        assert measure(machine, work, strategy="wall").median > 5_000
        m = measure(machine, both)
    finally:
        asked.put(False)
        thread.join()
    assert m.median == 3_000 and [k.name for k in m.kernels] == ["mine"]
    assert any("threads that are not the function's" in n for n in m.notes)


def test_capturing_what_cannot_be_captured(machine: SimulatedDevice) -> None:
    sim = machine.sim

    def captures() -> None:
        sim.call(Op.GRAPH_BEGIN_CAPTURE, graph_id=5)
        sim.launch("k", duration_ns=1_000)
        sim.call(Op.GRAPH_END_CAPTURE, graph_id=5)

    with pytest.raises(BenchError, match="nothing to do") as caught:
        measure(machine, captures)
    assert "captured" in caught.value.hint

    def synchronises() -> None:
        sim.launch("k", duration_ns=1_000)
        sim.call(Op.SYNC_STREAM)

    with pytest.raises(BenchError, match="cannot be captured"):
        measure(machine, synchronises, strategy="graph")
    assert measure(machine, synchronises).median == 1_000  # nothing of the failed capture is left


def test_what_the_function_raises_comes_out_and_nothing_stays_on(machine: SimulatedDevice) -> None:
    sim, calls = machine.sim, count()

    def work() -> None:
        if next(calls) == 20:
            raise KeyError("third")
        sim.launch("k", duration_ns=5_000)

    for strategy in ("kernel", "event", "graph", "cpu", "wall"):
        with pytest.raises(KeyError, match="third"):
            measure(machine, work, strategy=strategy)
        calls = count(18 if strategy == "event" else 0)
    with cuptiprof.profile(device=machine) as prof:
        sim.launch("k")
    assert len(prof.result().kernels) == 1


def test_arguments_that_make_no_sense_are_refused(machine: SimulatedDevice) -> None:
    sim = machine.sim

    def work() -> None:
        sim.launch("k", duration_ns=5_000)

    for options, words in (
        ({"strategy": "kernels"}, "unknown strategy"),
        ({"l2": "lukewarm"}, "unknown l2"),
        ({"l2": "cold", "strategy": "cpu"}, "says nothing"),
        ({"flops": -1}, "no amount"),
        ({"bytes": "lots"}, "no amount"),
        ({"dtype": "float31"}, "unknown dtype"),
        ({"max_seconds": 0}, "max_seconds"),
        ({"warmup_seconds": float("nan")}, "warmup_seconds"),
        ({"setup": 3}, "setup"),
        ({"stop": 100}, "no rule"),
        ({"strategy": ["kernel"]}, "unknown strategy"),
        ({"flops": [1.0]}, "no amount"),
        ({"metrics": [3]}, "no metric"),
        ({"params": [1]}, "params="),
        ({"params": {"f": object()}}, "no name that lasts"),
    ):
        with pytest.raises(BenchError, match=words):
            measure(machine, work, **options)  # type: ignore[arg-type]
    with pytest.raises(BenchError, match="measures a function") as caught:
        measure(machine, work())  # type: ignore[func-returns-value]
    assert "lambda" in caught.value.hint
    before = sim.truth()["kernels"]
    with pytest.raises(MetricError, match="achived"):
        measure(machine, work, metrics=["achived_occupancy"])
    assert sim.truth()["kernels"] == before  # said before anything was run


def test_the_module_is_the_function_in_any_order_of_imports() -> None:
    import importlib
    import subprocess
    import sys

    program = """
import sys
{first}
import cuptiprof
import cuptiprof.bench.results.measurement
from cuptiprof.bench import Kernel
assert callable(cuptiprof.bench) and cuptiprof.bench.Kernel is Kernel
assert cuptiprof.bench is sys.modules["cuptiprof.bench"]
"""
    for first in ("", "import cuptiprof.stats.statistics", "from cuptiprof import bench"):
        subprocess.run([sys.executable, "-c", program.format(first=first)], check=True)
    assert importlib.import_module("cuptiprof.bench") is cuptiprof.bench


def test_a_function_may_measure_itself(machine: SimulatedDevice) -> None:
    m = measure(machine, lambda: 1234.5, strategy="manual")
    assert m.median == 1234.5 and (m.samples == 1234.5).all()
    with pytest.raises(BenchError, match="returns its time"):
        measure(machine, lambda: "12", strategy="manual")


def test_a_function_may_report_other_numbers_with_its_time() -> None:
    calls: list[int] = []

    def work() -> dict[str, float]:
        calls.append(1)
        return {"ns": 100.0 + len(calls) % 3, "rows": len(calls)}

    m = cuptiprof.bench(work, device="host", strategy="manual", stop=Count(30))
    assert m.reported["rows"].shape == m.samples.shape
    assert (m.samples == 100 + m.reported["rows"] % 3).all()  # each number stands beside its own time
    assert m.reported["rows"][0] == m.warmup_calls + 1
    back = cuptiprof.bench.Measurement.from_dict(json.loads(json.dumps(m.to_dict())))
    assert (back.reported["rows"] == m.reported["rows"]).all()
    cut = m.to_dict() | {"reported": {"rows": [1.0]}}
    with pytest.raises(cuptiprof.CuptiprofError, match="different lengths"):
        cuptiprof.bench.Measurement.from_dict(cut)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"rows": 1}, 'without its time, "ns"'),
        ({"ns": "12"}, "returned str as 'ns'"),
        ({"ns": 1.0, "rows": float("nan")}, "returned nan as 'rows'"),
        (float("inf"), "returned inf"),
        (True, "returned bool"),
    ],
)
def test_what_is_no_time_is_refused(value: object, words: str) -> None:
    with pytest.raises(BenchError, match=words):
        cuptiprof.bench(lambda: value, device="host", strategy="manual", warmup_seconds=0.01)


def test_reported_numbers_are_the_same_in_each_call() -> None:
    calls = count()

    def work() -> dict[str, float]:
        return {"ns": 1.0, "odd" if next(calls) % 2 else "even": 1.0}

    with pytest.raises(BenchError, match="same numbers in each call"):
        cuptiprof.bench(work, device="host", strategy="manual")


def test_a_slow_function_is_not_called_more_often_than_there_is_time() -> None:
    calls: list[float] = []

    def slow() -> float:
        calls.append(time.monotonic())
        time.sleep(0.15)
        return 0.15e9

    m = cuptiprof.bench(slow, device="host", strategy="manual", max_seconds=0.3, warmup_seconds=0.01)
    assert len(m.samples) == 2 and len(calls) == m.warmup_calls + 2
    counted = cuptiprof.bench(lambda: time.sleep(0.01), device="host", strategy="wall", stop=Count(24))
    assert len(counted.samples) == 24  # and not the rest of a block


def test_functions_of_the_host_need_no_gpu() -> None:
    """An empty function: what a call of Python costs, and no work of the harness (that would be microseconds)."""
    m = cuptiprof.bench(lambda: None, device="host", strategy="cpu", max_seconds=0.5)
    assert m.batch > 50 and 0 < m.median < 1_000
    assert m.environment["chip"] == "" and not m.simulated and "host" in str(m)
    for options in ({"strategy": "kernel"}, {"strategy": "graph"}, {"strategy": "wall", "metrics": "ipc"}):
        with pytest.raises(BenchError, match="host"):
            cuptiprof.bench(lambda: None, device="host", **options)  # type: ignore[arg-type]


def test_work_of_a_thread_that_the_function_starts_is_its_own(machine: SimulatedDevice) -> None:
    sim = machine.sim

    def work() -> None:
        thread = threading.Thread(target=lambda: sim.launch("theirs", duration_ns=4_000))
        thread.start()
        thread.join()

    assert measure(machine, work, stop=Count(20)).median == 4_000


def test_bodies_that_have_not_run_are_refused(machine: SimulatedDevice) -> None:
    async def coroutine() -> None:
        machine.sim.launch("k")

    def generator() -> Iterator[None]:
        machine.sim.launch("k")
        yield

    for function, kind in ((coroutine, "coroutine"), (generator, "generator"), (lambda: generator(), "generator")):
        for strategy in ("cpu", "kernel"):
            with pytest.raises(BenchError, match=f"returns a {kind}, whose body has not run"):
                measure(machine, function, strategy=strategy)


@pytest.mark.parametrize("strategy", ["kernel", "event", "wall"])
def test_work_on_another_gpu_is_refused(strategy: str) -> None:
    """Waiting and events are the first GPU's: the times of the second would be those of nothing."""
    device = SimulatedDevice(virtual_clock=True, devices=2)
    sim = device.sim
    with pytest.raises(BenchError, match="works on GPU 1") as caught:
        measure(device, lambda: sim.launch("k", duration_ns=5_000, device=1), strategy=strategy)
    assert "set_device(1)" in caught.value.hint

    def both() -> None:
        sim.launch("k", duration_ns=5_000)
        sim.launch("k", duration_ns=5_000, device=1)

    m = measure(device, both, strategy=strategy, stop=Count(20))
    assert any("GPUs 0, 1" in n for n in m.notes)


def test_host_time_has_no_roofline(machine: SimulatedDevice) -> None:
    def work() -> None:
        machine.sim.launch("k", duration_ns=5_000)

    assert measure(machine, work, strategy="wall", flops=1e6, stop=Count(20)).roofline is not None
    assert measure(machine, work, strategy="cpu", flops=1e6, stop=Count(20)).roofline is None


def test_a_measurement_of_a_file_prints_harmlessly() -> None:
    m = cuptiprof.bench(lambda: 5.0, device="host", strategy="manual", name="a\x1b[31m\nb", stop=Count(2))
    assert "\x1b" not in str(m) and "a\\x1b[31m\\x0ab" in str(m)


def test_parameters_are_named_as_in_a_sweep(machine: SimulatedDevice) -> None:
    def work() -> None:
        machine.sim.launch("k", duration_ns=5_000)

    m = measure(machine, work, params={"n": np.int64(4), "of": len}, stop=Count(2))
    assert m.params == {"n": 4, "of": "len"} and json.dumps(m.to_dict())
