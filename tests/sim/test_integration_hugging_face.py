"""Hugging Face's Trainer with our callback, on the simulated device: a tiny GPT-2 with random weights, no network."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

import cuptiprof
from cuptiprof.errors import DeviceError, ResultError, SessionError
from cuptiprof.integrations.hugging_face import ProfilerCallback

EXAMPLES = 16


class Examples(torch.utils.data.Dataset[Any]):
    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error

    def __len__(self) -> int:
        return EXAMPLES

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        if self.error is not None and i == 11:
            raise self.error
        tokens = torch.arange(8) % 4 + i % 4
        return {"input_ids": tokens, "labels": tokens}


class Scratch(TrainerCallback):
    """Launches a kernel of its own where nothing else does it."""

    def on_epoch_begin(self, *_: Any, **kwargs: Any) -> None:
        torch.erfinv(torch.ones(4))


def trainer(
    folder: Path, callback: TrainerCallback | None, error: BaseException | None = None, **options: Any
) -> Trainer:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=32, n_positions=16, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0, loss_type="ForCausalLM"
    )  # fmt: skip
    arguments = TrainingArguments(
        **{
            "output_dir": str(folder / "out"),
            "per_device_train_batch_size": 2,
            "gradient_accumulation_steps": 2,
            "num_train_epochs": 1,
            "logging_steps": 1,
            "save_strategy": "no",
            "report_to": [],
            "use_cpu": True,
            "disable_tqdm": True,
            "train_sampling_strategy": "sequential",
            **options,
        }
    )
    callbacks = [Scratch()] if callback is None else [callback, Scratch()]
    return Trainer(
        GPT2LMHeadModel(config), arguments, train_dataset=Examples(error), eval_dataset=Examples(), callbacks=callbacks
    )


def embeddings(result: cuptiprof.Result, column: str) -> Counter[Any]:
    """How many look-ups of tokens and positions (two in each forward pass) each step, or each region, launched."""
    k = result.kernels
    found = Counter(v for v, name in zip(k[column].tolist(), k["name"], strict=True) if "embedding_kernel_cuda" in name)
    return Counter({v: n // 2 for v, n in found.items()})


def test_regions_and_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    callback = ProfilerCallback(tmp_path / "runs", view="regions", device="sim")
    trainer(tmp_path, callback, eval_strategy="steps", eval_steps=2).train()
    result = callback.result()
    # 16 examples, 2 a micro-batch, 2 of those a step; evaluation after steps 2 and 4 in 2 batches of 8.
    assert embeddings(result, "step") == {1: 2, 2: 2, 3: 2 + 2, 4: 2, 5: 2}
    assert embeddings(result, "region") == {"epoch/step/micro_batch": 8, "epoch/evaluate": 4}
    optimizer = [
        r for r, n in zip(result.kernels["region"], result.kernels["name"], strict=True) if "adam" in n.lower()
    ]
    assert set(optimizer) == {"epoch/step/optimizer_step"} and len(optimizer) >= 4
    calls = Counter(result.regions["path"].tolist())
    assert calls == {"epoch": 1, "epoch/step": 4, "epoch/step/micro_batch": 8, "epoch/step/optimizer_step": 4, "epoch/evaluate": 2}  # fmt: skip
    assert not result.regions["is_open"].any() and not result.losses
    assert {k: result.metadata[k] for k in ("framework", "stage")} == {"framework": "transformers", "stage": "train"}
    assert callback.saved == [str(tmp_path / "runs" / "train.cuptiprof")]
    assert len(cuptiprof.open(callback.saved[0]).kernels) == len(result.kernels)
    said = capsys.readouterr().out
    assert "micro_batch" in said and "SIMULATED" in said and f"saved: {callback.saved[0]}" in said


def test_evaluation_by_epoch_and_alone(tmp_path: Path) -> None:
    callback = ProfilerCallback(view=None, device="sim")
    uses = trainer(tmp_path, callback, eval_strategy="epoch", num_train_epochs=2)
    uses.train()
    assert embeddings(callback.result(), "region") == {"epoch/step/micro_batch": 16, "evaluate": 4}
    before = callback.result()
    uses.evaluate()  # nobody says that it begins: it is not profiled, and nothing is left running
    assert callback.result() is before and callback.saved == []
    with callback:
        uses.evaluate()
        uses.predict(Examples())
    assert embeddings(callback.result(), "step") == {1: 1, 2: 1, 3: 1, 4: 1}
    with callback:
        uses.train()
        torch.erfinv(torch.ones(4))
    assert embeddings(callback.result(), "region")["epoch/step/micro_batch"] == 16
    assert "" in callback.result().kernels["region"].tolist()  # what came after train() is of the block, too


def test_a_training_after_another_and_resumed(tmp_path: Path) -> None:
    callback = ProfilerCallback(tmp_path / "runs", view=None, device="sim")
    uses = trainer(tmp_path, callback, save_strategy="steps", save_steps=2)
    uses.train()
    assert "first_step" not in callback.result().metadata
    uses.train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-2"))
    assert embeddings(callback.result(), "step") == {1: 2, 2: 2} and callback.result().metadata["first_step"] == 2
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == ["train-2.cuptiprof", "train.cuptiprof"]


def test_given_as_a_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As the Trainer takes callbacks, too: it makes one without arguments."""
    monkeypatch.setenv("CUPTIPROF_DEVICE", "sim")
    uses = trainer(tmp_path, ProfilerCallback)  # type: ignore[arg-type]
    uses.train()
    assert "Overview" in capsys.readouterr().out
    callback = uses.pop_callback(ProfilerCallback)
    assert embeddings(callback.result(), "step") == {1: 2, 2: 2, 3: 2, 4: 2} and callback.saved == []


def test_a_schedule(tmp_path: Path) -> None:
    cycles = cuptiprof.schedule(wait=1, warmup=0, active=1, repeat=2)
    callback = ProfilerCallback(tmp_path / "runs", view=None, device="sim", schedule=cycles)
    trainer(tmp_path, callback).train()
    runs = [cuptiprof.open(path) for path in callback.saved]
    assert [embeddings(run, "step") for run in runs] == [{2: 2}, {4: 2}]
    assert all(embeddings(run, "region") == {"epoch/step/micro_batch": 2} for run in runs)


@pytest.mark.parametrize("block", [False, True])
def test_an_exception_keeps_the_result(tmp_path: Path, capsys: pytest.CaptureFixture[str], block: bool) -> None:
    callback = ProfilerCallback(tmp_path / "runs", device="sim")
    with pytest.raises(ValueError, match="mine"):
        if block:
            with callback:
                trainer(tmp_path, callback, ValueError("mine")).train()
        else:
            trainer(tmp_path, callback, ValueError("mine")).train()
    if block:  # it has ended by now
        assert "saved: " in capsys.readouterr().out
        assert cuptiprof.profile(device="sim").start().stop() is not None
    assert embeddings(callback.result(), "step") == {1: 2, 2: 2}
    assert len(callback.saved) == 1 and not callback.result().losses
    trainer(tmp_path, callback).train()
    assert embeddings(callback.result(), "step") == {1: 2, 2: 2, 3: 2, 4: 2}


def test_a_training_that_begins_again(tmp_path: Path) -> None:
    """auto_find_batch_size: after running out of memory the Trainer begins again, and tells nobody that it ended."""

    class OutOfMemory(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, *_: Any, **kwargs: Any) -> None:
            if state.train_batch_size == 2:
                raise RuntimeError("CUDA out of memory.")

    callback = ProfilerCallback(tmp_path / "runs", view=None, device="sim")
    uses = trainer(tmp_path, callback, auto_find_batch_size=True)
    uses.add_callback(OutOfMemory())
    uses.train()
    first, second = (cuptiprof.open(tmp_path / "runs" / f"train{n}.cuptiprof") for n in ("", "-2"))
    assert embeddings(first, "step") == {1: 2} and sum(embeddings(second, "step").values()) == EXAMPLES
    assert callback.saved == [str(tmp_path / "runs" / "train-2.cuptiprof")]


SCRIPT = """
import sys
from pathlib import Path
from test_integration_hugging_face import ProfilerCallback, trainer

error = {"none": None, "ctrl-c": KeyboardInterrupt()}[sys.argv[1]]
trainer(Path.cwd(), ProfilerCallback("runs", device="sim"), error).train()
"""


def script(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n{SCRIPT}")
    return subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=250, check=False
    )


def test_a_program_that_is_interrupted(tmp_path: Path) -> None:
    done = script(tmp_path, "train.py", "ctrl-c")
    assert done.returncode != 0 and "KeyboardInterrupt" in done.stderr
    assert "saved: " in done.stdout and "Overview" in done.stdout
    assert embeddings(cuptiprof.open(tmp_path / "runs" / "train.cuptiprof"), "step") == {1: 2, 2: 2}


def test_two_ranks(tmp_path: Path) -> None:
    done = script(tmp_path, "-m", "torch.distributed.run", "--nproc-per-node", "2", "train.py", "none")
    assert done.returncode == 0, done.stderr
    runs = {p.name: cuptiprof.open(p) for p in (tmp_path / "runs").iterdir()}
    ranks = {"train-rank0.cuptiprof": 0, "train-rank1.cuptiprof": 1}
    assert {name: run.metadata["rank"] for name, run in runs.items()} == ranks
    assert all(embeddings(run, "step") == {1: 2, 2: 2} for run in runs.values())
    assert done.stdout.count("Overview") == 1


def test_what_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="kernls"):
        ProfilerCallback(kernls="*gemm*")
    with pytest.raises(ResultError, match="did you mean 'regions'"):
        ProfilerCallback(view="region")
    with pytest.raises(SessionError, match="no result yet"):
        ProfilerCallback().result()
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultError, match="file"):
        trainer(tmp_path, ProfilerCallback(tmp_path / "file", device="sim")).train()
    monkeypatch.setenv("CUPTIPROF_CUPTI", str(tmp_path / "none.so"))
    with pytest.raises(DeviceError):
        trainer(tmp_path, ProfilerCallback(device="cuda")).train()


def test_without_transformers() -> None:
    code = (
        "import sys\nsys.modules['transformers'] = None\n"
        "from cuptiprof.errors import CuptiprofError\n"
        "try: import cuptiprof.integrations.hugging_face\n"
        "except CuptiprofError as e: print(e)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "there is no Trainer" in said and "pip install" in said
