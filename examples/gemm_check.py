"""Are the FLOPs that the GPU counts those of the algorithm? A matrix product has 2*m*n*k.

    python examples/gemm_check.py --device cuda --peak-gflops 67000 512 64 512

Times come from a run without counters: replay makes a kernel run alone and several times.
"""

from __future__ import annotations

import argparse
import json

import torch

import cuptiprof

# What the FP32 units and the tensor cores of a matrix product add up to; tensor operations are in no flop_count_* metric.
METRICS = [
    "flop_count_sp",
    "sm__ops_path_tensor_src_tf32_dst_fp32.sum",
    "sm__ops_path_tensor_src_fp16.sum",
    "sm__ops_path_tensor_src_bf16_dst_fp32.sum",
]


def check(
    m: int, n: int, k: int, *, device: str | None, calls: int = 8, peak_gflops: float | None = None
) -> dict[str, float]:
    """FLOPs of one product as computed and as counted, and the rate over the time of all its kernels.

    Returns:
        ``expected_flop``, ``counted_flop`` (per call), ``time_us`` (per call, without counters), ``gflops`` (expected over
        time), and with ``peak_gflops`` also ``time_at_peak_us`` and ``percent_of_peak``.
    """
    where = "cuda" if torch.cuda.is_available() and device in (None, "cuda") else "cpu"  # "sim" takes CPU tensors
    a, b = torch.randn(m, k, device=where), torch.randn(k, n, device=where)
    torch.mm(a, b)  # loads the library and picks the kernel

    with cuptiprof.profile(device=device) as timed:
        for _ in range(calls):
            torch.mm(a, b)
    with cuptiprof.profile(device=device, metrics=METRICS) as counted:
        for _ in range(calls):
            torch.mm(a, b)

    kernels = counted.result().kernels
    flop = sum(float(kernels[name].sum()) for name in METRICS) / calls
    time_ns = float(timed.result().kernels["duration"].sum()) / calls
    expected = 2.0 * m * n * k
    out = {
        "expected_flop": expected,
        "counted_flop": flop,
        "time_us": time_ns / 1e3,
        "gflops": expected / time_ns,
    }
    if peak_gflops:
        out["time_at_peak_us"] = expected / peak_gflops / 1e3
        out["percent_of_peak"] = 100 * out["gflops"] / peak_gflops
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description="Check 2*m*n*k against the FLOPs that the GPU counts.")
    parser.add_argument("m", type=int)
    parser.add_argument("n", type=int)
    parser.add_argument("k", type=int)
    parser.add_argument("--device", default=None)
    parser.add_argument("--calls", type=int, default=8)
    parser.add_argument("--peak-gflops", type=float, help="of the data type, from the chip's data sheet")
    a = parser.parse_args()
    found = check(a.m, a.n, a.k, device=a.device, calls=a.calls, peak_gflops=a.peak_gflops)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
