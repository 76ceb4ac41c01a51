"""Lightning's trainer with our profiler, on the simulated device: its actions are regions, its batches steps."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch

import cuptiprof
from cuptiprof.errors import DeviceError, ResultError, SessionError
from cuptiprof.integrations.lightning import LightningProfiler

BATCHES = 4


class Model(pl.LightningModule):
    def __init__(self, error: BaseException | None = None, fails_in: str = "training_step") -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 4)
        self.error, self.fails_in = error, fails_in

    def fail(self, where: str, batch: int) -> None:
        if self.error is not None and where == self.fails_in and batch == 2:
            raise self.error

    def training_step(self, batch: Any, i: int) -> torch.Tensor:
        self.fail("training_step", i)
        with self.trainer.profiler.profile("mine"):
            return self.layer(batch[0]).square().mean()

    def validation_step(self, batch: Any, i: int) -> None:
        self.fail("validation_step", i)
        self.log("loss", torch.softmax(self.layer(batch[0]), -1).mean())

    test_step = validation_step

    def predict_step(self, batch: Any, i: int) -> torch.Tensor:
        return torch.tanh(self.layer(batch[0]))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def data(error: BaseException | None = None) -> Any:
    def collate(rows: list[Any]) -> list[torch.Tensor]:
        if error is not None and rows[0][1] == 16:
            raise error
        return [torch.stack([row for row, _ in rows])]

    rows = [(torch.randn(8), i) for i in range(8 * BATCHES)]
    return torch.utils.data.DataLoader(rows, batch_size=8, collate_fn=collate)  # type: ignore[arg-type]


def trainer(profiler: LightningProfiler | None, **options: Any) -> pl.Trainer:
    return pl.Trainer(
        **{
            "max_epochs": 1,
            "accelerator": "cpu",
            "profiler": profiler,
            "logger": False,
            "enable_checkpointing": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "num_sanity_val_steps": 0,
            **options,
        }
    )


def kernels_by(result: cuptiprof.Result, column: str, pattern: str) -> Counter[Any]:
    """How many kernels of that name each step, or each region, launched."""
    k = result.kernels
    return Counter(v for v, name in zip(k[column].tolist(), k["name"], strict=True) if pattern in name)


def test_actions_are_regions_and_batches_steps(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    profiler = LightningProfiler(tmp_path, device="sim")
    with caplog.at_level(logging.INFO, "pytorch_lightning.profilers.profiler"):
        trainer(profiler, num_sanity_val_steps=1).fit(Model(), data(), data())
    result = profiler.result()
    # Products: one in the forward pass, one in backward (the input wants no gradient). Each batch is a step; validation is between them.
    assert kernels_by(result, "step", "gemm") == {1: 3, 2: 2, 3: 2, 4: 2, 5: BATCHES}
    batch = "run_training_epoch/run_training_batch/[LightningModule]Model.optimizer_step"
    assert kernels_by(result, "region", "gemm") == {
        "[Strategy]SingleDeviceStrategy.validation_step": 1,
        f"{batch}/[Strategy]SingleDeviceStrategy.training_step/mine": BATCHES,
        f"{batch}/[Strategy]SingleDeviceStrategy.backward": BATCHES,
        "run_training_epoch/[Strategy]SingleDeviceStrategy.validation_step": BATCHES,
    }
    assert set(kernels_by(result, "region", "softmax")) == {
        "[Strategy]SingleDeviceStrategy.validation_step",
        "run_training_epoch/[Strategy]SingleDeviceStrategy.validation_step",
    }
    assert not result.regions["is_open"].any() and not result.losses
    assert not any("_Exceptions" in name for name in result.regions["name"])
    assert result.metadata["framework"] == "pytorch_lightning" and result.metadata["stage"] == "fit"
    assert profiler.saved == [str(tmp_path / "fit.cuptiprof")]
    assert len(cuptiprof.open(profiler.saved[0]).kernels) == len(result.kernels)
    said = caplog.text
    assert "FIT Profiler Report" in said and "SIMULATED" in said and f"saved: {profiler.saved[0]}" in said


def test_stages_after_each_other(tmp_path: Path) -> None:
    """fit twice, and each evaluation: a session each, never overwritten; between them nothing is collected."""
    profiler = LightningProfiler(tmp_path, device="sim", view=None)
    uses, model = trainer(profiler), Model()
    uses.fit(model, data())
    assert kernels_by(profiler.result(), "step", "gemm") == dict.fromkeys(range(1, BATCHES + 1), 2)
    model.layer(torch.ones(1, 8))
    uses.save_checkpoint(tmp_path / "model.ckpt")  # an action outside of any stage
    uses.fit_loop.max_epochs = 2
    uses.fit(model, data())
    assert kernels_by(profiler.result(), "step", "gemm") == dict.fromkeys(range(1, BATCHES + 1), 2)
    for stage, kernel in (("validate", "softmax"), ("test", "softmax"), ("predict", "tanh")):
        getattr(uses, stage)(model, data(), **({"verbose": False} if stage != "predict" else {}))
        assert kernels_by(profiler.result(), "step", kernel) == dict.fromkeys(range(1, BATCHES + 1), 1), stage
        assert profiler.saved == [str(tmp_path / f"{stage}.cuptiprof")]
    names = {"fit", "fit-2", "validate", "test", "predict"}
    assert {p.name for p in tmp_path.glob("*.cuptiprof")} == {f"{n}.cuptiprof" for n in names}
    assert cuptiprof.profile(device="sim").start().stop() is not None  # none is left running


def test_a_schedule(tmp_path: Path) -> None:
    """Two cycles of one batch; each is saved when it ends."""
    seen: list[int] = []
    profiler = LightningProfiler(
        tmp_path,
        device="sim",
        schedule=cuptiprof.schedule(wait=1, warmup=0, active=1, repeat=2),
        on_ready=lambda session: seen.append(len(session.result().kernels)),
    )
    trainer(profiler).fit(Model(), data())
    runs = [cuptiprof.open(path) for path in profiler.saved]
    assert [Path(p).name for p in profiler.saved] == ["fit.cuptiprof", "fit-2.cuptiprof"]
    assert [dict(kernels_by(run, "step", "gemm")) for run in runs] == [{2: 2}, {4: 2}]
    batch = "run_training_epoch/run_training_batch/[LightningModule]Model.optimizer_step"
    assert all(f"{batch}/[Strategy]SingleDeviceStrategy.backward" in run.kernels["region"].tolist() for run in runs)
    assert seen == [len(run.kernels) for run in runs]


@pytest.mark.parametrize("fails_in", ["training_step", "validation_step", "data"])
def test_an_exception_ends_the_session_and_keeps_the_result(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fails_in: str
) -> None:
    profiler = LightningProfiler(tmp_path, device="sim", view="regions")
    uses = trainer(profiler)
    with caplog.at_level(logging.INFO, "pytorch_lightning.profilers.profiler"), pytest.raises(ValueError, match="mine"):
        if fails_in == "training_step":
            uses.fit(Model(ValueError("mine")), data())
        elif fails_in == "validation_step":
            uses.validate(Model(ValueError("mine"), fails_in), data())
        else:
            uses.validate(Model(), data(ValueError("mine")))  # outside of every action
    # Ended by then, and what runs after it is not in it.
    assert cuptiprof.profile(device="sim").start().stop() is not None
    assert set(kernels_by(profiler.result(), "step", "gemm")) == {1, 2}
    assert len(profiler.saved) == 1 and len(cuptiprof.open(profiler.saved[0]).kernels)
    assert caplog.text.count("Profiler Report") == 1


def test_ctrl_c(tmp_path: Path) -> None:
    profiler = LightningProfiler(tmp_path, device="sim", view=None)
    handler = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit):
            trainer(profiler).fit(Model(KeyboardInterrupt()), data())
    finally:
        signal.signal(signal.SIGINT, handler)  # Lightning leaves it ignored
    assert set(kernels_by(profiler.result(), "step", "gemm")) == {1, 2} and len(profiler.saved) == 1


def test_the_report_in_a_file(tmp_path: Path) -> None:
    trainer(LightningProfiler(tmp_path, "mine", device="sim", view=["regions", "summary"])).fit(Model(), data())
    text = (tmp_path / "fit-mine.txt").read_text()
    assert "run_training_batch" in text and "GPU activities" in text
    assert (tmp_path / "fit-mine.cuptiprof" / "run.json").is_file()


def test_what_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="did you mean 'metrics'"):
        LightningProfiler(metrcs=["ipc"])
    with pytest.raises(ResultError, match="did you mean 'overview'"):
        LightningProfiler(view="overvew")
    with pytest.raises(SessionError, match=r"cuptiprof\.schedule"):
        LightningProfiler(schedule=torch.profiler.schedule(wait=1, warmup=1, active=1))
    with pytest.raises(SessionError, match="unknown source"):
        LightningProfiler(sources="nvxt")
    with pytest.raises(SessionError, match="no result yet"):
        LightningProfiler(device="sim").result()
    with pytest.raises(ResultError, match="folders"):
        trainer(LightningProfiler("s3://bucket/runs", device="sim")).fit(Model(), data())
    monkeypatch.setenv("CUPTIPROF_CUPTI", str(tmp_path / "none.so"))
    with pytest.raises(DeviceError):
        trainer(LightningProfiler(tmp_path, device="cuda")).fit(Model(), data())
    assert not list(tmp_path.iterdir())
    other = cuptiprof.profile(device="sim").start()
    with pytest.raises(SessionError, match="another cuptiprof session"):
        trainer(LightningProfiler(tmp_path, device="sim")).fit(Model(), data())
    assert other.state == "running"  # nobody ended it
    other.stop()


def test_by_itself(tmp_path: Path) -> None:
    """As Lightning's profilers can be used: without a trainer."""
    profiler = LightningProfiler(tmp_path, "x", device="sim", save=False)
    profiler.setup("fit")
    with profiler.profile("mine"):
        torch.softmax(torch.ones(4, 4), -1)
    profiler.describe()
    assert set(profiler.result().kernels["region"]) == {"mine"}
    assert profiler.saved == [] and [p.name for p in tmp_path.iterdir()] == ["fit-x.txt"]


RANKS = """
import sys, torch
import lightning.pytorch as pl
from cuptiprof.integrations.lightning import LightningProfiler, Profiler

class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 4)
    def training_step(self, batch, i):
        return self.layer(batch[0]).square().mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

if __name__ == "__main__":
    assert Profiler.__module__.startswith("lightning.pytorch.")
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(32, 8)), batch_size=8)
    pl.Trainer(max_epochs=1, accelerator="cpu", devices=2, strategy="ddp_spawn", logger=False, enable_checkpointing=False,
               enable_progress_bar=False, profiler=LightningProfiler("runs", device="sim")).fit(Model(), data)
"""


def test_two_ranks_of_the_other_package(tmp_path: Path) -> None:
    """One folder with a run of each rank; one report. `lightning` has a base class of its own."""
    (tmp_path / "train.py").write_text(RANKS)
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    runs = {p.name: cuptiprof.open(p) for p in (tmp_path / "runs").iterdir()}
    assert {name: run.metadata["rank"] for name, run in runs.items()} == {
        "fit-rank0.cuptiprof": 0,
        "fit-rank1.cuptiprof": 1,
    }
    for run in runs.values():
        assert set(kernels_by(run, "step", "gemm")) == {1, 2} and run.metadata["framework"] == "lightning.pytorch"
    assert done.stderr.count("FIT Profiler Report") == 1


def test_without_lightning() -> None:
    code = (
        "import sys\nsys.modules['lightning'] = sys.modules['pytorch_lightning'] = None\n"
        "from cuptiprof.errors import CuptiprofError\n"
        "try: import cuptiprof.integrations.lightning\n"
        "except CuptiprofError as e: print(e)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "there is no Lightning" in said and "pip install lightning" in said
