"""A training loop that was written for torch.profiler: one import is another, nothing else.

python examples/torch_profiler_one_import.py                           # on a GPU
CUPTIPROF_DEVICE=sim python examples/torch_profiler_one_import.py      # without one
"""

import torch
from torch import nn

import cuptiprof.torch_profiler as profiler  # was: import torch.profiler as profiler


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(16 * 8 * 8, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(images).flatten(1))


def trace_handler(prof: profiler.profile) -> None:
    print(prof.key_averages(group_by_input_shape=True).table(sort_by="self_cuda_time_total", row_limit=10))
    prof.export_chrome_trace("trace.json")


def main() -> None:
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Classifier().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA],
        schedule=profiler.schedule(wait=1, warmup=1, active=3, repeat=1),
        on_trace_ready=trace_handler,
        record_shapes=True,
        with_flops=True,
    ) as prof:
        for _ in range(5):
            images = torch.randn(32, 3, 16, 16, device=device)
            labels = torch.randint(10, (32,), device=device)
            with profiler.record_function("forward"):
                loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            prof.step()
    print(prof.result().report("operators", limit=10))  # what torch.profiler has not: ours


if __name__ == "__main__":
    main()
