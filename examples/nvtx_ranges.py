"""Whose kernels, by NVTX ranges that are in the program already: a loader and a trainer, each in a domain of its own.

python examples/nvtx_ranges.py                  # on a GPU, with torch
python examples/nvtx_ranges.py --device sim     # without one
"""

import argparse

import cuptiprof

cuptiprof.inject_nvtx()  # before NVTX is used

import nvtx  # noqa: E402


def gpu_work(device: str):
    """What launches a kernel of that name."""
    if device.startswith("sim"):
        from cuptiprof.sim.sim_device import SimDevice

        return SimDevice().launch
    import torch

    x = torch.randn(1024, 1024, device="cuda")
    return lambda name: getattr(torch, name)(x)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    launch = gpu_work(arguments.device)

    with cuptiprof.profile(device=arguments.device, sources=["nvtx"]) as prof:
        epoch = nvtx.start_range("epoch")
        for step in range(3):
            with nvtx.annotate("load", domain="data", category="disk", payload=step):
                launch("abs")
            with nvtx.annotate("train"), cuptiprof.region("optimizer"):
                launch("exp")
        nvtx.end_range(epoch)

    kernels = prof.result().kernels
    for name, region, ranges, started in zip(
        kernels["name"], kernels["region"], kernels["nvtx"], kernels["nvtx_start_end"], strict=True
    ):
        print(f"{name[:30]:30} {region:16} {ranges:10} {started}")
    loading = prof.result().filter(cuptiprof.KernelFilter.from_ncu(nvtx_include="data@load/"))
    print(f"{len(loading.kernels)} of {len(kernels)} kernels in data@load")


if __name__ == "__main__":
    main()
