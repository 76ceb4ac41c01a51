"""Do the times of kernel records keep pace with CLOCK_MONOTONIC_RAW? python -m benchmarks.clock_drift [--seconds 3600]

Four times a second one short kernel is launched and waited for, between two readings of the raw clock; its record's start
must lie between them. The slope of (record - raw) over the raw clock is the drift, in parts per million: of kernel
records, of CLOCK_MONOTONIC itself (slewed by NTP), and of what is left between the two, which is CUPTI's own error.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.common import arguments, finish

EVERY_S = 0.25
RAW = time.CLOCK_MONOTONIC_RAW


def drift_ppm(at: npt.NDArray[np.float64], offset: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Slope of `offset` (ns) over `at` (ns) in parts per million, and its standard error; both shapes (n,), n >= 3.

    Least squares. Raises ValueError for fewer than three points.
    """
    if len(at) < 3:
        raise ValueError("a drift needs three points")
    x, y = at - at.mean(), offset - offset.mean()
    slope = float((x * y).sum() / (x * x).sum())
    residual = y - slope * x
    error = float(np.sqrt((residual**2).sum() / (len(at) - 2) / (x * x).sum()))
    return slope * 1e6, error * 1e6


def measure(device: str, seconds: float) -> dict[str, Any]:
    """Drift over `seconds`; all offsets and waits in ns.

    Raises:
        CuptiprofError: no such device, or CUPTI refused.
    """
    import cuptiprof
    from benchmarks.gpu_work import make_work

    work = make_work(device)
    readings: list[tuple[int, int, int, int]] = []
    with cuptiprof.profile(device=device, activities=["kernel"]) as prof:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            before, mono_before = time.clock_gettime_ns(RAW), time.monotonic_ns()
            work.small(1)
            work.synchronize()
            mono_after, after = time.monotonic_ns(), time.clock_gettime_ns(RAW)
            readings.append((before, after, mono_before, mono_after))
            time.sleep(min(EVERY_S, seconds / 16))
    kernels = prof.result().kernels
    starts = np.sort(np.asarray(kernels["start"], np.int64))
    if len(starts) != len(readings) or len(starts) < 3:
        return {"error": f"{len(starts)} records of {len(readings)} launches", "losses": dict(prof.result().losses)}
    before, after, mono_before, mono_after = np.array(readings, np.int64).T
    # Differences of integers first: times since boot in ns do not fit a double to the nanosecond for ever.
    at = (before - before[0]).astype(np.float64)
    record = (starts - before - (starts[0] - before[0])).astype(np.float64)
    monotonic = (mono_before - before - (mono_before[0] - before[0])).astype(np.float64)
    inside = (starts >= mono_before) & (starts <= mono_after)
    out: dict[str, Any] = {"kernels": len(starts), "seconds": round(float(at[-1]) / 1e9, 2)}
    series = {"records_to_raw": record, "monotonic_to_raw": monotonic, "records_to_monotonic": record - monotonic}
    for name, offset in series.items():
        slope, error = drift_ppm(at, offset)
        out[name] = {"drift_ppm": round(slope, 3), "standard_error_ppm": round(error, 3)}
    return out | {
        "wait_ns_median": int(np.median(after - before)),
        "starts_inside_their_launch": int(inside.sum()),
        "all_inside": bool(inside.all()),
    }


def main() -> None:
    from cuptiprof.device.locate import driver_present

    parser = arguments(__doc__)
    parser.add_argument("--device", choices=("sim", "cuda"), help="default: cuda where there is a driver")
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    device = options.device or ("cuda" if driver_present() else "sim")
    data = {"benchmark": "clock_drift", "device": device, "simulated": device == "sim"}
    finish(data | measure(device, options.seconds), options.out)


if __name__ == "__main__":
    main()
