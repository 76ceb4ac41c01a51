"""torch's autograd threads work for the thread that called backward: the engine object says who did."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import pytest
import torch
from torch.autograd.variable import Variable

import cuptiprof
from cuptiprof.sim.sim_device import SimDevice

OURS = ["by_*", "again", "outside", "after"]


class Engine:
    """A thread named as torch's own for a GPU, which launches what a backward of a layer would."""

    def __init__(self) -> None:
        self.asked: SimpleQueue[str | None] = SimpleQueue()
        self.done: SimpleQueue[None] = SimpleQueue()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        ctypes.CDLL(None).prctl(15, b"pt_autograd_0", 0, 0, 0)
        while (name := self.asked.get()) is not None:
            SimDevice().launch(name)
            self.done.put(None)

    def launch(self, name: str) -> None:
        self.asked.put(name)
        self.done.get()


@pytest.fixture
def engine() -> Iterator[Engine]:
    e = Engine()
    yield e
    e.asked.put(None)
    e.thread.join()


def layer(engine: Engine, name: str) -> Any:
    class Layer(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            engine.launch(name)
            return gradient * 2

    return Layer.apply


def test_backward_and_grad(sim: SimDevice, engine: Engine) -> None:
    x = torch.ones(3, requires_grad=True)
    ready, leave = threading.Event(), threading.Event()

    def beside() -> None:
        with cuptiprof.region("beside"):  # neither is this one's
            ready.set()
            leave.wait()

    other = threading.Thread(target=beside)
    before = Variable._execution_engine
    with cuptiprof.profile(device="sim", activities=["kernel"], kernels=OURS) as prof:
        other.start()
        ready.wait()
        with cuptiprof.region("fwd"):
            loss = layer(engine, "by_backward")(x).sum()
        with cuptiprof.region("bwd"):
            loss.backward()
        with cuptiprof.region("grad"):
            torch.autograd.grad(layer(engine, "by_grad")(x).sum(), x)
            checkpointed = torch.utils.checkpoint.checkpoint(layer(engine, "again"), x, use_reentrant=True)
            checkpointed.sum().backward()  # calls the engine inside of the engine
        layer(engine, "outside")(x).sum().backward()
        leave.set()
        other.join()
    assert Variable._execution_engine is before
    kernels = prof.result().kernels
    got = dict(zip(kernels["name"], kernels["region"], strict=True))
    assert got == {"by_backward": "bwd", "by_grad": "grad", "again": "grad", "outside": ""}


def test_an_exception_in_backward(sim: SimDevice, engine: Engine) -> None:
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            raise ValueError("user's own")

    with cuptiprof.profile(device="sim", activities=["kernel"], kernels=OURS) as prof, cuptiprof.region("step"):
        with pytest.raises(ValueError, match="user's own"):
            Fails.apply(torch.ones(3, requires_grad=True)).sum().backward()
        engine.launch("after")
    assert list(prof.result().kernels["region"]) == [""]


def test_torch_imported_inside_the_session() -> None:
    """As `cuptiprof run` has it."""
    script = """
import cuptiprof, sys
assert "torch" not in sys.modules
with cuptiprof.profile(device="sim", activities=["kernel"]):
    import torch
    from torch.autograd.variable import Variable
    assert type(Variable._execution_engine).__name__ == "Following"
    torch.ones(2, requires_grad=True).sum().backward()
assert type(Variable._execution_engine) is torch._C._ImperativeEngine
assert not [f for f in sys.meta_path if type(f).__module__ == "cuptiprof.regions.when_imported"]
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
