"""Hardware counters of the matrix products of two training steps; the other steps run undisturbed.

python examples/counters_of_a_step.py                 # on a GPU
python examples/counters_of_a_step.py --device sim    # without one
"""

import argparse

import torch

import cuptiprof


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda", choices=["cuda", "sim"])
    arguments = parser.parse_args()

    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256))
    x = torch.randn(64, 256)
    if arguments.device == "cuda":
        model, x = model.cuda(), x.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    products = cuptiprof.KernelFilter("regex:gemm", steps=[3, 7])
    with cuptiprof.profile(device=arguments.device, kernels=products, metrics=["achieved_occupancy", "ipc"]) as prof:
        for _ in range(10):
            with cuptiprof.region("fwd"):
                loss = model(x).square().mean()
            with cuptiprof.region("bwd"):
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()

    kernels = prof.result().kernels
    for step, region, occupancy, ipc in zip(
        kernels["step"], kernels["region"], kernels["achieved_occupancy"], kernels["ipc"], strict=True
    ):
        print(f"step {step - 1}  {region:4}  occupancy {occupancy:.3f}  ipc {ipc:.2f}")


if __name__ == "__main__":
    main()
