"""The training loops of the seeds, with one import changed, on the simulated device.

Seed 000 and 004 are loops as they stand there, 002 names what a loop may say, 001 wraps its loop in ``emit_nvtx``, for which the
profiler stands here, and 003's model is Keras', here of the same layers. Models and batches are smaller than theirs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cuptiprof

COMMON = """
import sys
import torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
torch.set_num_threads(1)
"""

SEEDS = {
    "000": (
        "from torch.profiler import profile, tensorboard_trace_handler, ProfilerActivity, schedule",
        "from cuptiprof.torch_profiler import profile, tensorboard_trace_handler, ProfilerActivity, schedule",
        """
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
train_loader = torch.utils.data.DataLoader([(torch.randn(3, 8, 8), i % 10) for i in range(32)], batch_size=4)
logname = "log"
prof = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],           # 1
              schedule=schedule(wait=1, warmup=1, active=5, repeat=1),         # 2
              on_trace_ready=tensorboard_trace_handler(logname),               # 3
              profile_memory=MEMORY,                                             # 4
              record_shapes=False,                                            # 5
              with_stack=False,                                               # 6
              with_flops=False)                                              # 7
with prof:
    for epoch in range(0, 1):
        for i, (images, labels) in enumerate(train_loader):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            prof.step()
""",
    ),
    "001": (
        "from torch.profiler import profile",
        "from cuptiprof.torch_profiler import profile",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Conv2d(1, 4, 3, padding=1)
        self.head = nn.Conv2d(4, 1, 1)
    def forward(self, im_data, gt_data):
        density_map = self.head(torch.relu(self.front(im_data)))
        self.loss = F.mse_loss(density_map, gt_data)
        return density_map
net = Net()
optimizer = torch.optim.Adam(net.parameters())
im_data, gt_data = torch.randn(2, 1, 16, 16), torch.rand(2, 1, 16, 16)
with profile() as prof:
    density_map = net(im_data, gt_data)
    loss = net.loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(prof.key_averages().table(sort_by="cuda_time_total", row_limit=20))
""",
    ),
    "002": (
        "import torch.profiler as profiler",
        "import cuptiprof.torch_profiler as profiler",
        """
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with profiler.profile(
    activities=[
        torch.profiler.ProfilerActivity.CPU,
        torch.profiler.ProfilerActivity.CUDA],
    profile_memory=MEMORY,
    record_shapes=True,
) as prof:
    for step in range(3):
        with profiler.record_function("forward pass"):
            loss = model(torch.randn(8, 16)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(prof.key_averages(group_by_input_shape=True).table(sort_by="self_cuda_time_total", row_limit=-1))
prof.export_chrome_trace("trace.json")
""",
    ),
    "003": (
        "from torch.profiler import profile, ProfilerActivity",
        "from cuptiprof.torch_profiler import profile, ProfilerActivity",
        """
model = nn.Sequential(nn.Conv2d(1, 4, kernel_size=(3, 3)), nn.ReLU(), nn.Conv2d(4, 8, (3, 3)), nn.ReLU(), nn.MaxPool2d((2, 2)),
                      nn.Dropout(0.25), nn.Flatten(), nn.Linear(288, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 10))
optimizer = torch.optim.Adadelta(model.parameters())
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_flops=True, with_stack=True) as p:
    for batch in range(2):
        loss = F.cross_entropy(model(torch.randn(4, 1, 16, 16)), torch.tensor([0, 1, 2, 3]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(p.key_averages(group_by_stack_n=2).table(sort_by="self_cpu_time_total", row_limit=200, max_src_column_width=200))
p.export_stacks("stacks.txt", "self_cuda_time_total")
""",
    ),
    "004": (
        "from torch.profiler import profile, record_function, ProfilerActivity",
        "from cuptiprof.torch_profiler import profile, record_function, ProfilerActivity",
        """
def trace_handler(p):
    output = p.key_averages().table(sort_by="self_cuda_time_total", row_limit=10)
    print(output)
    p.export_chrome_trace("trace.json")

model = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
optimizer = torch.optim.AdamW(model.parameters())
dataloader = [torch.randn(2, 4, 16) for _ in range(8)]

def train_step(batch):
    with record_function("train_step"):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    schedule=torch.profiler.schedule(
        wait=1,
        warmup=1,
        active=5,),
    on_trace_ready=trace_handler
) as p:

  for batch in dataloader:
    train_step(batch)
    p.step()
""",
    ),
}

HEADINGS = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "Self CUDA", "Self CUDA %", "CUDA total",
            "CUDA time avg", "# of Calls"]  # fmt: skip


def run(folder: Path, seed: str) -> str:
    theirs, ours, loop = SEEDS[seed]
    assert theirs.replace("torch.profiler", "cuptiprof.torch_profiler") == ours
    (folder / "train.py").write_text(f"{COMMON}\n{ours}\n{loop.replace('MEMORY', 'True')}")
    done = subprocess.run(
        [sys.executable, "train.py"],
        cwd=folder,
        env={**os.environ, "CUPTIPROF_DEVICE": "sim"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def table(text: str) -> tuple[list[str], dict[str, list[str]]]:
    """Headings, and name -> cells of the first table in a text."""
    lines = text.splitlines()
    rules = [i for i, line in enumerate(lines) if line.startswith("-----")]
    edges = [
        i
        for i, (a, b) in enumerate(zip(" " + lines[rules[0]], lines[rules[0]] + " ", strict=False))
        if (a == " ") != (b == " ")
    ]
    columns = list(zip(edges[::2], edges[1::2], strict=False))

    def cells(line: str) -> list[str]:
        return [line[a:b].strip() for a, b in columns]

    rows = [cells(line) for line in lines[rules[1] + 1 : rules[2]]]
    # Torch's "CUDA time avg" is wider than its column.
    return re.split(r"\s{2,}", lines[rules[0] + 1].strip()), {row[0]: row for row in rows if row[0]}


def events(path: Path) -> list[dict[str, object]]:
    return [e for e in json.loads(path.read_text())["traceEvents"] if e.get("ph") == "X"]


def test_000_tensorboard(tmp_path: Path) -> None:
    assert run(tmp_path, "000") == ""
    (file,) = (tmp_path / "log").glob("*.pt.trace.json")
    found = events(file)
    assert sorted(str(e["name"]) for e in found if str(e["name"]).startswith("ProfilerStep")) == [
        f"ProfilerStep#{i}" for i in range(2, 7)
    ]
    assert any("cudnn" in str(e["name"]) or "conv" in str(e["name"]) for e in found if e["cat"] == "kernel")
    operators = [e["name"] for e in found if e["cat"] == "cpu_op"]
    assert operators.count("aten::conv2d") == 5 and operators.count("ConvolutionBackward0") == 5
    assert json.loads(file.read_text())["profile_memory"] == 1
    opened = cuptiprof.open(file)
    assert len(opened.operators) == len(operators)
    assert {row["operator"]: row["calls"] for row in opened.report("operators").rows}["aten::conv2d"] == 5


def test_001_one_step(tmp_path: Path) -> None:
    headings, rows = table(run(tmp_path, "001"))
    assert headings == HEADINGS
    assert rows["aten::conv2d"][-1] == "2" and rows["Optimizer.step#Adam.step"][-1] == "1"


def test_002_memory_shapes_and_record_function(tmp_path: Path) -> None:
    headings, rows = table(run(tmp_path, "002"))
    memory = ["CUDA Mem", "Self CUDA Mem"]
    assert headings == [*HEADINGS[:-1], *memory, HEADINGS[-1], "Input Shapes"]
    assert rows["aten::addmm"][-1].startswith("[[")
    assert rows["forward pass"][headings.index("# of Calls")] == "3"
    found = {str(e["name"]): e for e in events(tmp_path / "trace.json")}
    assert found["forward pass"]["cat"] == "user_annotation" and found["aten::addmm"]["cat"] == "cpu_op"


def test_003_stacks_and_operations(tmp_path: Path) -> None:
    headings, rows = table(run(tmp_path, "003"))
    assert headings[:-1] == [*HEADINGS, "Source Location"] and headings[-1].startswith("Total ")
    assert "conv.py(" in rows["aten::convolution_backward"][-2] and float(rows["aten::mm"][-1]) > 0
    stacks = (tmp_path / "stacks.txt").read_text().splitlines()
    assert stacks and all("train.py(" in line and line.rsplit(" ", 1)[1].isdigit() for line in stacks)


def test_004_schedule_and_handler(tmp_path: Path) -> None:
    said = run(tmp_path, "004")
    headings, rows = table(said)
    assert headings == HEADINGS and len(rows) <= 10
    found = events(tmp_path / "trace.json")
    assert sum(e["name"] == "train_step" for e in found) == 5
    assert said.count("Self CUDA time total") == 1


@pytest.mark.parametrize("seed", sorted(SEEDS.keys() - {"003"}))  # names in torch's own stacks are not always UTF-8
def test_the_loop_runs_under_torch_itself(seed: str, tmp_path: Path) -> None:
    """What is called one import changed is that."""
    theirs, _, loop = SEEDS[seed]
    (tmp_path / "train.py").write_text(
        f"{COMMON}\n{theirs}\n{loop.replace('MEMORY', 'False')}".replace("cuda_time", "cpu_time")
    )
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
