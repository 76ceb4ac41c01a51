"""PM sampling: its clock against that of kernel records, and what can run beside it."""

from __future__ import annotations

import itertools
import statistics
import time
from typing import Any

import numpy as np

import cuptiprof
from benchmarks.gpu_work import Work
from benchmarks.probes.raw import ONE_PASS, CuptiFailed, Ranges, RawApi, Sampler
from cuptiprof.errors import CuptiprofError

ACTIVE = "sm__cycles_active.avg"
INTERVAL_NS = 20_000


def _edges(samples: np.ndarray, values: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each kernel start, the offset (ns) of the nearest rise of the samples; and the kernels that have one.

    Inside the sample in which the rise lies, it is placed by how much of that sample was active.
    """
    level = np.percentile(values, 95)
    active = np.clip(values / level, 0.0, 1.0) if level > 0 else np.zeros_like(values)
    rises = np.flatnonzero((active[1:] > 0.05) & (active[:-1] <= 0.05)) + 1
    at = samples[rises, 1] - active[rises] * (samples[rises, 1] - samples[rises, 0])
    offsets, kernels = [], []
    for k, start in enumerate(starts):
        if not len(at):
            break
        nearest = at[np.argmin(np.abs(at - start))]
        if abs(nearest - start) < 2e6:
            offsets.append(nearest - start)
            kernels.append(k)
    return np.array(offsets), np.array(kernels, int)


def clock_against_records(work: Work) -> dict[str, Any]:
    """Offset and drift between the timestamps of samples and those of kernel records, over two seconds.

    Assumed: both are on the same clock, with no offset.
    """
    with cuptiprof.profile(
        device=work.device, activities=["kernel"], metrics=[ACTIVE], strategy="sample", sampling_interval=INTERVAL_NS
    ) as prof:
        until = time.monotonic() + 2
        while time.monotonic() < until:
            work.busy()
            work.synchronize()
            time.sleep(0.008)
    result = prof.result()
    is_sample = result.metric_ranges["kind"] == 4
    samples = np.stack([result.metric_ranges[c][is_sample] for c in ("start", "end")], axis=1).astype(np.float64)
    values = result.counters[ACTIVE][is_sample]
    order = np.argsort(samples[:, 0])
    samples, values = samples[order], np.nan_to_num(values[order])
    long = result.kernels["duration"] > 200_000
    starts = np.sort(result.kernels["start"][long]).astype(np.float64)
    lengths = np.diff(samples, axis=1)[:, 0]
    out: dict[str, Any] = {
        "samples": len(samples),
        "kernels": len(starts),
        "losses": dict(result.losses),
        "sample_length_us": [round(float(x) / 1e3, 2) for x in np.percentile(lengths, [5, 50, 95])]
        if len(lengths)
        else [],
        "gaps_over_1.5_intervals": int((np.diff(samples[:, 0]) > 1.5 * INTERVAL_NS).sum()),
    }
    if len(samples) < 2 or len(starts) < 4:
        return out
    offsets, kernels = _edges(samples, values, starts)
    out["edges_found"] = len(offsets)
    if len(offsets) >= 4:
        slope = np.polyfit(starts[kernels] - starts[0], offsets, 1)[0]
        out |= {
            "offset_us_quartiles": [round(float(x) / 1e3, 2) for x in np.percentile(offsets, [25, 50, 75])],
            "drift_ppm": round(float(slope) * 1e6, 2),
        }
    return out


def raw_timestamps(work: Work) -> dict[str, Any]:
    """Samples' own timestamps against cuptiGetTimestamp around them: which clock is it, and is a sample's end its time?

    Assumed: it is CUPTI's clock.
    """
    api = RawApi(work.device)
    sampler = Sampler(api, [ACTIVE], chip=api.chip, interval=100_000, samples=4000, capacity=4000)
    before = api.timestamp()
    sampler.do("Start")
    started = api.timestamp()
    for _ in range(10):
        work.busy()
    work.synchronize()
    stopping = api.timestamp()
    sampler.do("Stop")
    stopped = api.timestamp()
    decoded = sampler.decode()
    count = sampler.count()
    times = [sampler.times(i) for i in range(count)]
    values = [sampler.values(i)[0] for i in range(count)]
    sampler.do("Disable")
    return {
        "samples": count,
        "overflow": int(decoded.overflow),
        "stop_reason": int(decoded.reason),
        "start_call_us": (started - before) / 1e3,
        "stop_call_us": (stopped - stopping) / 1e3,
        "first_start_after_start_us": (times[0][0] - started) / 1e3 if times else None,
        "last_end_before_stop_us": (stopping - times[-1][1]) / 1e3 if times else None,
        "length_us_median": statistics.median(b - a for a, b in times) / 1e3 if times else None,
        "first_sample_length_us": (times[0][1] - times[0][0]) / 1e3 if times else None,
        "first_values": values[:4],
        "touching": sum(a[1] == b[0] for a, b in itertools.pairwise(times)),
    }


def beside_ranges(work: Work) -> dict[str, Any]:
    """PM sampling while ranges are profiled, and the other way round: which call refuses, with what?

    Assumed: both work at once; the stand-in allows it.
    """
    api = RawApi(work.device)
    out: dict[str, Any] = {}

    def ranges_work() -> str:
        try:
            ranges = Ranges(api, ONE_PASS, chip=api.chip)
            ranges.start()
            work.small(2)
            ranges.stop()
            dropped, total = ranges.decode(), ranges.count()
            ranges.disable()
            return f"ok: {total} ranges, {dropped} dropped"
        except CuptiFailed as e:
            return str(e)

    try:
        sampler = Sampler(api, [ACTIVE], chip=api.chip)
        sampler.do("Start")
        out["ranges while samples are taken"] = ranges_work()
        sampler.do("Stop")
        sampler.decode()
        out["samples taken meanwhile"] = sampler.count()
        sampler.do("Disable")
    except CuptiFailed as e:
        out["sampling"] = str(e)
    out["ranges alone, afterwards"] = ranges_work()
    ranges = Ranges(api, ONE_PASS, chip=api.chip)
    ranges.start()
    try:
        sampler = Sampler(api, [ACTIVE], chip=api.chip)
        sampler.do("Start")
        work.small(2)
        sampler.do("Stop")
        sampler.do("Disable")
        out["samples while ranges are on"] = "ok"
    except CuptiFailed as e:
        out["samples while ranges are on"] = str(e)
    ranges.stop()
    out["those ranges"] = [ranges.decode(), ranges.count()]
    ranges.disable()
    return out


def shortest_interval(work: Work) -> dict[str, Any]:
    """The interval that the chip gives for one asked for, and what is lost at it.

    Assumed: it gives those asked for.
    """
    out: dict[str, Any] = {}
    for asked in (1_000, 5_000, 10_000, 20_000, 100_000, 1_000_000):
        try:
            with cuptiprof.profile(
                device=work.device, activities=["kernel"], metrics=[ACTIVE], strategy="sample", sampling_interval=asked
            ) as prof:
                until = time.monotonic() + 0.3
                while time.monotonic() < until:
                    work.busy()
                    work.synchronize()
            result = prof.result()
            mine = result.metric_ranges["kind"] == 4
            lengths = (result.metric_ranges["end"] - result.metric_ranges["start"])[mine]
            out[f"{asked / 1000:g} us"] = {
                "samples": len(lengths),
                "median_us": float(np.median(lengths)) / 1e3 if len(lengths) else None,
                "overflows": result.losses["sample_overflows"],
            }
        except CuptiprofError as e:
            out[f"{asked / 1000:g} us"] = str(e)
    return out


PROBES = [clock_against_records, raw_timestamps, beside_ranges, shortest_interval]
