"""A Lightning trainer whose actions say whose kernels are whose.

python examples/train_lightning.py
CUPTIPROF_DEVICE=sim python examples/train_lightning.py    (no GPU needed)
cuptiprof report --view overview fit.cuptiprof             (what it has saved)
"""

import lightning.pytorch as pl
import torch
from torch.nn import functional as F

import cuptiprof
from cuptiprof.integrations.lightning import LightningProfiler


class Classifier(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        inputs, labels = batch
        with self.trainer.profiler.profile("forward"):  # an action of your own
            logits = self.net(inputs)
        return F.cross_entropy(logits, labels)

    def validation_step(self, batch: list[torch.Tensor], index: int) -> None:
        self.log("loss", F.cross_entropy(self.net(batch[0]), batch[1]))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters())


def main() -> None:
    data = torch.utils.data.TensorDataset(torch.randn(512, 64), torch.randint(10, (512,)))
    batches = torch.utils.data.DataLoader(data, batch_size=64)
    profiler = LightningProfiler(
        ".", view=["overview", "regions"], schedule=cuptiprof.schedule(wait=1, warmup=1, active=3, repeat=1)
    )
    trainer = pl.Trainer(max_epochs=1, profiler=profiler, logger=False, enable_checkpointing=False)
    trainer.fit(Classifier(), batches, batches)


if __name__ == "__main__":
    main()
