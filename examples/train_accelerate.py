"""A loop of Accelerate's: its own profile(), with another ProfileKwargs.

python examples/train_accelerate.py
CUPTIPROF_DEVICE=sim python examples/train_accelerate.py    (no GPU needed)
accelerate launch examples/train_accelerate.py              (several GPUs: a run for each rank)
"""

import torch
from accelerate import Accelerator

import cuptiprof
from cuptiprof.integrations.accelerate import ProfileKwargs  # instead of accelerate.utils'


def main() -> None:
    handler = ProfileKwargs(schedule_option={"wait": 1, "warmup": 1, "active": 2, "repeat": 1}, folder="runs")
    accelerator = Accelerator(kwargs_handlers=[handler])
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    data = torch.utils.data.TensorDataset(torch.randn(256, 64), torch.randint(10, (256,)))
    model, optimizer, batches = accelerator.prepare(
        net, torch.optim.AdamW(net.parameters()), torch.utils.data.DataLoader(data, batch_size=32)
    )
    with accelerator.profile() as prof:
        for inputs, labels in batches:
            with cuptiprof.region("fwd"):
                loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            with cuptiprof.region("bwd"):
                accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            prof.step()
    accelerator.print(prof.key_averages().table(sort_by="self_cuda_time_total", row_limit=10))
    accelerator.print(prof.result().regions_report())


if __name__ == "__main__":
    main()
