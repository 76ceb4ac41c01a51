"""What the range profiler does when it is started and stopped around single launches."""

from __future__ import annotations

import statistics
import time
from ctypes import c_uint8
from typing import Any

from benchmarks.gpu_work import Work
from benchmarks.probes.raw import (
    AUTO,
    INST,
    KERNEL_REPLAY,
    ONE_PASS,
    TWO_PASSES,
    USER,
    USER_REPLAY,
    CuptiFailed,
    Host,
    LaunchHook,
    Ranges,
    RawApi,
    text_array,
)

LAUNCHES = 6
STEPS = 30
OTHER = ["sm__warps_active.avg.pct_of_peak_sustained_active"]


def _restarted(work: Work, *, user: bool, inside: bool, decode_each: bool) -> dict[str, Any]:
    """One SetConfig, then Start .. Stop around each of six launches: outside of CUPTI's callbacks or inside them."""
    api = RawApi(work.device)
    mode, replay = (USER, USER_REPLAY) if user else (AUTO, KERNEL_REPLAY)
    metrics = ONE_PASS if user else TWO_PASSES
    ranges = Ranges(api, metrics, mode=mode, replay=replay, chip=api.chip)
    counts: list[int] = []
    dropped: list[int] = []

    def before() -> None:
        ranges.start()
        if user:
            ranges.push(str(len(counts)))

    def after() -> None:
        if user:
            ranges.pop()
        ranges.stop()
        if decode_each:
            dropped.append(ranges.decode())
        counts.append(ranges.count())

    error = ""
    if inside:
        with LaunchHook(api, before, after) as hook:
            work.small(LAUNCHES)
        error = hook.error
    else:
        try:
            for _ in range(LAUNCHES):
                before()
                work.small(1)
                after()
        except CuptiFailed as e:
            error = f"launch {len(counts) + 1}: {e}"
    work.synchronize()
    out: dict[str, Any] = {"error": error, "ranges_after_each": counts, "dropped": dropped}
    try:
        if not decode_each:
            out["dropped"] = [ranges.decode()]
        total = ranges.count()
        out["ranges_at_end"] = total
        out["accumulates"] = total == LAUNCHES
        out["names"] = [ranges.name(i) for i in range(total)]
        out["inst_executed"] = [ranges.values(i)[metrics.index(INST)] for i in range(total)]
        out["all_equal"] = len(set(out["inst_executed"])) == 1
    except CuptiFailed as e:
        out["error"] = error or str(e)
    ranges.disable()
    return out


def replay_restarted_outside(work: Work) -> dict[str, Any]:
    """Kernel replay, Start and Stop outside callbacks, decoded after every launch: do ranges accumulate?

    Assumed: yes, one more range each time.
    """
    return _restarted(work, user=False, inside=False, decode_each=True)


def replay_restarted_in_callbacks(work: Work) -> dict[str, Any]:
    """Kernel replay, Start and Stop inside launch callbacks without SetConfig between, decoded after every launch.

    Assumed: it works, and ranges accumulate.
    """
    return _restarted(work, user=False, inside=True, decode_each=True)


def replay_decoded_once(work: Work) -> dict[str, Any]:
    """Kernel replay, Start and Stop inside launch callbacks, decoded once at the end: is anything lost?

    Assumed: no.
    """
    return _restarted(work, user=False, inside=True, decode_each=False)


def user_range_restarted_outside(work: Work) -> dict[str, Any]:
    """User range and user replay: does the n-th Start after a Stop work, and do ranges accumulate?

    Assumed: yes.
    """
    return _restarted(work, user=True, inside=False, decode_each=False)


def user_range_restarted_in_callbacks(work: Work) -> dict[str, Any]:
    """User range and user replay with Start, Push, Pop and Stop inside launch callbacks: what direct counting of selected launches does.

    Assumed: it works.
    """
    return _restarted(work, user=True, inside=True, decode_each=False)


def user_range_decoded_each(work: Work) -> dict[str, Any]:
    """User range and user replay inside launch callbacks, decoded after every launch.

    Assumed: it works.
    """
    return _restarted(work, user=True, inside=True, decode_each=True)


def user_range_kept_started(work: Work) -> dict[str, Any]:
    """User ranges started once, Push and Pop inside launch callbacks: what direct counting of every launch does.

    Assumed: it works.
    """
    api = RawApi(work.device)
    ranges = Ranges(api, ONE_PASS, mode=USER, replay=USER_REPLAY, chip=api.chip)
    ranges.start()
    names = iter(range(LAUNCHES))
    with LaunchHook(api, lambda: ranges.push(str(next(names))), ranges.pop) as hook:
        work.small(LAUNCHES)
    ranges.stop()
    ranges.decode()
    total = ranges.count()
    out = {
        "error": hook.error,
        "ranges_at_end": total,
        "names": [ranges.name(i) for i in range(total)],
        "inst_executed": [ranges.values(i)[0] for i in range(total)],
    }
    ranges.disable()
    return out


def user_range_without_synchronising(work: Work) -> dict[str, Any]:
    """Is an asynchronous kernel inside a user range that is popped before anybody waits for it?

    Assumed: yes.
    """
    api = RawApi(work.device)
    ranges = Ranges(api, ONE_PASS, mode=USER, replay=USER_REPLAY, chip=api.chip)
    ranges.start()
    for name, wait in (("waited", True), ("popped at once", False), ("waited again", True), ("empty", None)):
        ranges.push(name)
        if wait is not None:
            work.busy()
        if wait:
            work.synchronize()
        ranges.pop()
    work.synchronize()
    ranges.stop()
    ranges.decode()
    values = {ranges.name(i): dict(zip(ONE_PASS, ranges.values(i), strict=True)) for i in range(ranges.count())}
    ranges.disable()
    inside = values.get("popped at once", {}).get(INST), values.get("waited", {}).get(INST)
    return {"ranges": values, "kernel_is_inside": inside[0] is not None and inside[0] == inside[1]}


def nested_user_ranges(work: Work) -> dict[str, Any]:
    """Two levels of user ranges: are both levels had in one run, or one level a pass; what are the names?

    Assumed: a level at a time.
    """
    api = RawApi(work.device)
    ranges = Ranges(api, ONE_PASS, mode=USER, replay=USER_REPLAY, levels=2, chip=api.chip)
    stops = []
    for _ in range(4):
        ranges.start()
        ranges.push("outer")
        work.small(1)
        ranges.push("inner")
        work.small(2)
        ranges.pop()
        ranges.pop()
        stopped = ranges.stop()
        stops.append([int(stopped.pass_index), int(stopped.target_level), int(stopped.all_submitted)])
        if stopped.all_submitted:
            break
    ranges.decode()
    values = {ranges.name(i): ranges.values(i)[0] for i in range(ranges.count())}
    ranges.disable()
    return {"stops (pass, level, all submitted)": stops, "inst_executed": values}


def config_image_between_steps(work: Work) -> dict[str, Any]:
    """What does it cost to change the config image between steps, beside starting with the same one?

    Assumed: well below a millisecond, so that "iterate" may change passes every step.
    """
    api = RawApi(work.device)
    ranges = Ranges(api, ONE_PASS, mode=USER, replay=USER_REPLAY, chip=api.chip)
    host = Host(api, api.chip)
    host.add(OTHER)
    # Each set has its own image of counter data too, as in a session.
    configs = [_settings(ranges.config, ranges.data), _settings(host.image(), _counter_data(ranges, OTHER))]
    plain = [_step_us(work) for _ in range(STEPS)]
    same = [_counted_step_us(ranges, work, configs[0]) for _ in range(STEPS)]
    changed = [_counted_step_us(ranges, work, configs[i % 2]) for i in range(STEPS)]
    ranges.disable()
    medians = {"same image": _medians(same), "other image each step": _medians(changed)}
    return {
        "steps": STEPS,
        "image_bytes": [c["config_size"] for c in configs],
        "step_us": round(statistics.median(plain), 1),
        **medians,
        "set_config_of_step": round(medians["other image each step"]["set_config_us"] / statistics.median(plain), 4),
    }


def _step_us(work: Work) -> float:
    start = time.perf_counter_ns()
    work.step()
    return (time.perf_counter_ns() - start) / 1e3


def _settings(config: Any, data: Any) -> dict[str, Any]:
    return {"config": config, "config_size": len(config), "image": data, "image_size": len(data)}


def _counter_data(ranges: Ranges, metrics: list[str]) -> Any:
    size = ranges.do(
        "GetCounterDataSize", names=text_array(metrics), count=len(metrics), max_ranges=64, tree_nodes=64
    ).size
    data = (c_uint8 * size)()
    ranges.do("CounterDataImageInitialize", size=size, image=data)
    return data


def _counted_step_us(ranges: Ranges, work: Work, config: dict[str, Any]) -> tuple[float, float, float, float]:
    """us of SetConfig, Start with PushRange, the step, and PopRange with Stop."""
    clock = time.perf_counter_ns
    t0 = clock()
    ranges.set_config(**config)
    t1 = clock()
    ranges.start()
    ranges.push("step")
    t2 = clock()
    work.step()
    t3 = clock()
    ranges.pop()
    ranges.stop()
    return tuple(d / 1e3 for d in (t1 - t0, t2 - t1, t3 - t2, clock() - t3))  # type: ignore[return-value]


def _medians(steps: list[tuple[float, float, float, float]]) -> dict[str, float]:
    names = ("set_config_us", "start_us", "step_us", "stop_us")
    return {
        name: round(statistics.median(column), 1) for name, column in zip(names, zip(*steps, strict=True), strict=True)
    }


PROBES = [
    config_image_between_steps,
    replay_restarted_outside,
    replay_restarted_in_callbacks,
    replay_decoded_once,
    user_range_restarted_outside,
    user_range_restarted_in_callbacks,
    user_range_decoded_each,
    user_range_kept_started,
    user_range_without_synchronising,
    nested_user_ranges,
]
