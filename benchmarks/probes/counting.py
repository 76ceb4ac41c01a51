"""Times, limits and costs of counted launches, and what samples are like beside records."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from ctypes import c_uint8
from typing import Any

import cuptiprof
from benchmarks.gpu_work import Work
from benchmarks.probes.raw import AUTO, ONE_PASS, USER, USER_REPLAY, CuptiFailed, Ranges, RawApi, Sampler, text_array

TIME = "gpu__time_duration.sum"
LAUNCHES = 30
ASKED = (512, 1024, 2000, 2048, 3000, 4096, 8192)
FOUR = ["sm__cycles_active.avg", "sm__cycles_elapsed.avg", "dram__bytes_read.sum", "gpu__time_duration.sum"]


def _ranges(api: RawApi, mode: int, metrics: list[str] = ONE_PASS) -> Ranges:
    return Ranges(api, metrics, mode=mode, replay=USER_REPLAY, chip=api.chip)


def _range_times(work: Work, mode: int, launch: Callable[[], object]) -> list[float]:
    """us of each of the launches, each waited for; one range each."""
    ranges = _ranges(RawApi(work.device), mode, [TIME])
    ranges.start()
    for i in range(LAUNCHES):
        if mode == USER:
            ranges.push(str(i))
        launch()
        work.synchronize()
        if mode == USER:
            ranges.pop()
    ranges.stop()
    ranges.decode()
    out = [ranges.values(i)[0] / 1e3 for i in range(ranges.count())]
    ranges.disable()
    return out


def _record_times(work: Work, launch: Callable[[], object]) -> list[float]:
    with cuptiprof.profile(device=work.device, activities=["kernel"]) as prof:
        for _ in range(LAUNCHES):
            launch()
            work.synchronize()
    return [float(d) / 1e3 for d in prof.result().kernels["duration"]]


def time_by_each_way(work: Work) -> dict[str, Any]:
    """How long is the same kernel by user range, by automatic range and by its record (gpu__time_duration.sum, medians)?

    Assumed: automatic range and record agree within 10 % or 2 us; a user range has the host's time too.
    """
    out: dict[str, Any] = {"launches of each": LAUNCHES}
    for name, launch in (("short", lambda: work.small(1)), ("long", work.busy)):
        ways = {
            "record_us": _record_times(work, launch),
            "automatic_range_us": _range_times(work, AUTO, launch),
            "user_range_us": _range_times(work, USER, launch),
        }
        medians = {way: round(statistics.median(us), 3) if us else None for way, us in ways.items()}
        record, automatic = medians["record_us"], medians["automatic_range_us"]
        agree = record is not None and automatic is not None and abs(automatic - record) <= max(0.1 * record, 2)
        out[name] = medians | {
            "numbers": [len(us) for us in ways.values()],
            "automatic range is the record's time": agree,
        }
    return out


def _accepts(ranges: Ranges, count: int) -> str:
    """ "" or what was refused; with images of so many ranges."""
    try:
        size = ranges.do(
            "GetCounterDataSize", names=text_array(ONE_PASS), count=len(ONE_PASS), max_ranges=count, tree_nodes=count
        ).size
        data = (c_uint8 * size)()
        ranges.do("CounterDataImageInitialize", size=size, image=data)
        ranges.set_config(image=data, image_size=size, max_ranges=count)
    except CuptiFailed as e:
        return str(e)
    ranges.data = data  # it must outlive the configuration
    return ""


def most_ranges(work: Work) -> dict[str, Any]:
    """How many ranges a pass does cuptiRangeProfilerSetConfig accept, and with what does it refuse more?

    Assumed: 1,024; on a refusal half as many are asked for.
    """
    work.small(1)
    ranges = _ranges(RawApi(work.device), USER)
    answers = {count: _accepts(ranges, count) for count in ASKED}
    accepted = max((c for c, refused in answers.items() if not refused), default=0)
    refused = min((c for c, refused in answers.items() if refused and c > accepted), default=0)
    while refused - accepted > 1:
        middle = (accepted + refused) // 2
        if answer := _accepts(ranges, middle):
            refused, answers[middle] = middle, answer
        else:
            accepted = middle
    bytes_of_64 = ranges.do(
        "GetCounterDataSize", names=text_array(ONE_PASS), count=len(ONE_PASS), max_ranges=64, tree_nodes=64
    ).size
    ranges.disable()
    return {
        "accepted": accepted,
        "refused": refused or f"none up to {ASKED[-1]}",
        "with": answers.get(refused, ""),
        "image_bytes_per_range": round(bytes_of_64 / 64),
        "as assumed": accepted >= 1024,
    }


def records_beside_samples(work: Work) -> dict[str, Any]:
    """Have kernels records while samples are taken, and what slots come: without times, of no length, of how many bytes?

    Assumed: each launch has its record; slots without times come after a full image, of no length after a stop.
    """
    out: dict[str, Any] = {}
    for name, options in (("alone", {}), ("beside samples", {"metrics": FOUR[:1], "strategy": "sample"})):
        with cuptiprof.profile(device=work.device, activities=["kernel"], **options) as prof:
            for _ in range(LAUNCHES):
                work.busy()
            work.synchronize()
        result = prof.result()
        out[name] = {
            "launches": result.metadata["launches"]["launches"],
            "records": len(result.kernels),
            "losses": {k: v for k, v in dict(result.losses).items() if v},
        }
    out["each launch has a record"] = out["beside samples"]["records"] == out["beside samples"]["launches"]
    return out | _slots(work)


def _slots(work: Work) -> dict[str, Any]:
    api = RawApi(work.device)
    slots = 64
    sampler = Sampler(api, FOUR, chip=api.chip, interval=20_000, samples=slots, capacity=4000)
    kinds = {"without times": 0, "of no length": 0, "good": 0}
    reasons: list[int] = []
    sampler.do("Start")
    work.busy()
    work.synchronize()
    time.sleep(0.02)
    sampler.do("Stop")
    error = ""
    for _ in range(200):
        try:
            reasons.append(int(sampler.decode().reason))
        except CuptiFailed as e:
            error = str(e)
            break
        for i in range(sampler.count()):
            start, end = sampler.times(i)
            kinds["without times" if start == 0 else "good" if end > start else "of no length"] += 1
        sampler.clear()
        if reasons[-1] != 1:  # CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL
            break
    sampler.do("Disable")
    return {"slot_bytes": round(len(sampler.data) / slots), "slots": kinds, "full images": reasons.count(1), "last reason": reasons[-1:], "error": error}  # fmt: skip


def _us(call: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start) / 1e3


def cost_of_a_counted_launch(work: Work) -> dict[str, Any]:
    """What does each piece of a counted launch cost on the host, us: configure, start, push, launch, pop, stop, decode, evaluate?

    Assumed: within a session that stays started a launch costs 100 us more at most; decoding and evaluation are shared by a batch.
    """

    def launch() -> None:
        work.small(1)
        work.synchronize()

    for _ in range(LAUNCHES):
        launch()
    api = RawApi(work.device)
    pieces: dict[str, list[float]] = {"launch and wait, not counted": [_us(launch) for _ in range(LAUNCHES)]}

    def note(piece: str, call: Callable[[], object]) -> None:
        pieces.setdefault(piece, []).append(_us(call))

    ranges = _ranges(api, AUTO)
    for _ in range(LAUNCHES):
        note("initialise an image", ranges.initialize)
        note("set the configuration", ranges.set_config)
    ranges.start()
    for _ in range(LAUNCHES):
        note("launch and wait, automatic range, stays started", launch)
    ranges.stop()
    note(f"decode {LAUNCHES} ranges", ranges.decode)
    for i in range(ranges.count()):
        note("evaluate a range", lambda i=i: ranges.values(i))  # type: ignore[misc]
    ranges.disable()
    ranges = _ranges(api, AUTO)
    for _ in range(LAUNCHES):
        note("start", ranges.start)
        note("launch and wait, automatic range, started for it", launch)
        note("stop", ranges.stop)
        note("decode a range", ranges.decode)
    ranges.disable()
    ranges = _ranges(api, USER)
    ranges.start()
    for i in range(LAUNCHES):
        note("push", lambda i=i: ranges.push(str(i)))  # type: ignore[misc]
        note("launch and wait, user range", launch)
        note("pop", ranges.pop)
    ranges.stop()
    ranges.decode()
    ranges.disable()
    medians = {piece: round(statistics.median(us), 2) for piece, us in pieces.items()}
    over = medians["launch and wait, automatic range, stays started"] - medians["launch and wait, not counted"]
    return {"us": medians, "over a launch that is not counted, us": round(over, 2), "as assumed": over <= 100}


def evaluation_on_another_thread(work: Work) -> dict[str, Any]:
    """Are values the same when another thread works them out, while this one launches and counts with the same profiler?

    Assumed: yes, and each evaluation succeeds; a session's values are worked out so.
    """
    ranges = _ranges(RawApi(work.device), AUTO)

    def count_some() -> None:
        ranges.start()
        for _ in range(LAUNCHES):
            work.small(1)
        work.synchronize()
        ranges.stop()
        ranges.decode()

    count_some()
    image = type(ranges.data).from_buffer_copy(ranges.data)
    numbers = range(ranges.count())
    here = [ranges.host.evaluate(image, i, ranges.metrics) for i in numbers]
    there: list[list[float]] = []
    errors: list[str] = []
    counted_once = threading.Event()

    def evaluate() -> None:
        try:
            while not counted_once.is_set() or not there:
                there[:] = [ranges.host.evaluate(image, i, ranges.metrics) for i in numbers]
        except CuptiFailed as e:
            errors.append(str(e))

    thread = threading.Thread(target=evaluate)
    thread.start()
    for _ in range(5):
        ranges.initialize()
        ranges.set_config()
        count_some()
    counted_once.set()
    thread.join()
    again = ranges.count()
    ranges.disable()
    same = len(here) == LAUNCHES and here == there
    return {"ranges": len(here), "ranges counted beside": again, "the same values": same, "errors": errors, "as assumed": same and again == LAUNCHES and not errors}  # fmt: skip


PROBES = [
    time_by_each_way,
    most_ranges,
    records_beside_samples,
    cost_of_a_counted_launch,
    evaluation_on_another_thread,
]
