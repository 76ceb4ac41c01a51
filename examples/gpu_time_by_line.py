"""Which lines of a program the GPU works for: a table by line, and a flame graph to open in speedscope.

python examples/gpu_time_by_line.py                 # on a GPU
python examples/gpu_time_by_line.py --device sim    # without one
"""

import argparse

import torch

import cuptiprof


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    weights = scores.softmax(-1)
    return weights @ v


def layer(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    q, k, v = (x @ w).chunk(3, dim=-1)
    return x + attend(q, k, v)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda", choices=["cuda", "sim"])
    parser.add_argument("--output", default="lines.speedscope.json")
    arguments = parser.parse_args()

    x = torch.randn(4, 128, 64, device="cuda" if arguments.device == "cuda" else None)
    w = torch.randn(64, 192, device=x.device)
    with cuptiprof.profile(device=arguments.device, sources="stacks") as prof:
        for _ in range(3):
            x = layer(x, w)

    result = prof.result()
    print(result.report("lines", lines=["attend", "layer"]))
    stacks = result.python_stacks()
    longest = int(result.kernels["duration"].argmax())
    print("The longest kernel was launched from")
    for frame in stacks.frames(int(result.kernels["stack"][longest])):
        if frame.is_user:
            print(f"  {frame.file}:{frame.line} {frame.function}")
    result.export(arguments.output, overwrite=True)
    print(f"wrote {arguments.output}: open it at https://www.speedscope.app")


if __name__ == "__main__":
    main()
