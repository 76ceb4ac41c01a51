"""What the range profiler does when it is started and stopped around single launches."""

from __future__ import annotations

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
    LaunchHook,
    Ranges,
    RawApi,
)

LAUNCHES = 6


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
    """Kernel replay, Start and Stop outside callbacks, decoded after every launch: do ranges accumulate?"""
    return _restarted(work, user=False, inside=False, decode_each=True)


def replay_restarted_in_callbacks(work: Work) -> dict[str, Any]:
    """Kernel replay, Start and Stop inside launch callbacks without SetConfig between, decoded after every launch."""
    return _restarted(work, user=False, inside=True, decode_each=True)


def replay_decoded_once(work: Work) -> dict[str, Any]:
    """Kernel replay, Start and Stop inside launch callbacks, decoded once at the end: is anything lost?"""
    return _restarted(work, user=False, inside=True, decode_each=False)


def user_range_restarted_outside(work: Work) -> dict[str, Any]:
    """User range and user replay: does the n-th Start after a Stop work, and do ranges accumulate?"""
    return _restarted(work, user=True, inside=False, decode_each=False)


def user_range_restarted_in_callbacks(work: Work) -> dict[str, Any]:
    """The same with Start, Push, Pop and Stop inside launch callbacks: what direct counting of selected launches does."""
    return _restarted(work, user=True, inside=True, decode_each=False)


def user_range_decoded_each(work: Work) -> dict[str, Any]:
    """The same, decoded after every launch."""
    return _restarted(work, user=True, inside=True, decode_each=True)


def user_range_kept_started(work: Work) -> dict[str, Any]:
    """Started once, Push and Pop inside launch callbacks: what direct counting of every launch does."""
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
    """Is an asynchronous kernel inside a user range that is popped before anybody waits for it?"""
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
    """Two levels of user ranges: are both levels had in one run, or one level a pass; what are the names?"""
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


PROBES = [
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
