"""Hugging Face's Trainer with a callback: a tiny language model with random weights, nothing is downloaded.

python examples/train_hugging_face.py
CUPTIPROF_DEVICE=sim python examples/train_hugging_face.py    (no GPU needed)
cuptiprof report --view regions runs                          (what it has saved)
"""

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from cuptiprof.integrations.hugging_face import ProfilerCallback


class Sequences(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 32

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        tokens = torch.arange(i, i + 16) % 64
        return {"input_ids": tokens, "labels": tokens}


def main() -> None:
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4
    )
    arguments = TrainingArguments(
        "out",
        max_steps=4,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        eval_strategy="steps",
        eval_steps=2,
        save_strategy="no",
        report_to=[],
    )
    callback = ProfilerCallback(folder="runs", view="regions")
    trainer = Trainer(
        LlamaForCausalLM(config), arguments, train_dataset=Sequences(), eval_dataset=Sequences(), callbacks=[callback]
    )
    trainer.train()


if __name__ == "__main__":
    main()
