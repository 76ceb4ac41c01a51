"""Names that pages use without saying where they come from: run before the first block of each page."""

import multiprocessing.pool as _pool
import queue as _queue

import torch
from torch.overrides import TorchFunctionMode as _Mode

import cuptiprof


class _CudaIsHere(_Mode):
    """Where there is no CUDA, ``device="cuda"`` means the host, whose operators the simulated device takes for its own."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if str(kwargs.get("device", "")).startswith("cuda"):
            kwargs["device"] = "cpu"
        args = tuple("cpu" if isinstance(a, (str, torch.device)) and str(a).startswith("cuda") else a for a in args)
        return function(*args, **kwargs)


if not torch.cuda.is_available():
    _CudaIsHere().__enter__()

m = n = k = 64
moved, i = 3 * 4 * 64 * 64, 0
net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))


def model(inputs):
    """Its result can be a loss, too."""
    return net(inputs).square().mean()


compiled = model
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))
loader = [(x, y)] * 8
batch = x


def train(batches=loader):
    for inputs, labels in batches:
        with cuptiprof.region("fwd"):
            loss = torch.nn.functional.cross_entropy(net(inputs), labels)
        with cuptiprof.region("bwd"):
            loss.backward()


def f():
    return model(x)


def g():
    return model(x[:16])


def job():
    return model(x)


queue = _queue.Queue()
pool = _pool.ThreadPool(1)
