"""PyTorch on the simulated GPU: an ordinary CPU script, whose operators also launch simulated kernels.

The script is unchanged and computes its real results; every operator that a GPU would run as kernels is launched on the
simulated device with a modelled duration (``roofline``). All CPU tensors count as device tensors. Works for eager code on the
thread that started the session, backward included; ``torch.compile`` is not modelled.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from cuptiprof.sim import roofline
from cuptiprof.sim.device import Flag, Op, SimDevice
from cuptiprof.sim.torch_kernels import CONVOLUTIONS, HOST_READS, Kernel, kernels_of

_DTOH = 2  # CUPTI_ACTIVITY_MEMCPY_KIND_DTOH


class TorchSimMode(TorchDispatchMode):  # type: ignore[misc]  # torch is optional and not followed
    """Active while a session on the simulated device runs. `unmodelled` counts operators that the model failed on."""

    def __init__(self, device: SimDevice, chip: str) -> None:
        super().__init__()
        self.device = device
        self.chip = roofline.CHIPS[chip]
        self.unmodelled = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        try:
            if _launches(func):
                self._run(func, args, kwargs, out)
        except Exception:
            # The program must not notice: an operator that the model cannot describe is counted, nothing else.
            self.unmodelled += 1
        return out

    def _run(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        op = func._schema.name.rpartition("::")[2]
        tensors = list(_tensors((args, kwargs)))
        results = list(_tensors(out))
        if op in HOST_READS:
            size = sum(t.nbytes for t in tensors)
            self.device.call(
                Op.MEMCPY, flags=Flag.ASYNC, copy_kind=_DTOH, bytes=size, duration_ns=roofline.copy_ns(size)
            )
            self.device.call(Op.SYNC_STREAM)
            return
        # The largest tensor says how much work there is (a reduction's output is small), the first result what comes out.
        main = max(results or tensors, key=torch.Tensor.numel, default=None)
        if main is None:
            return
        work = max([*tensors, *results], key=torch.Tensor.numel)
        shape = tuple(main.shape)
        rows = work.numel() // work.shape[-1] if work.dim() and work.shape[-1] else 1
        dtype = str(work.dtype).removeprefix("torch.")
        kernels = kernels_of(op, self.chip, dtype, work.numel(), rows, shape)
        if not kernels:
            return
        moved = sum(t.nbytes for t in tensors) + sum(t.nbytes for t in results)
        flops = _flops(func, op, args, kwargs, out, work.numel())
        for kernel in kernels:
            self._launch(kernel, flops / len(kernels), moved / len(kernels), dtype)

    def _launch(self, kernel: Kernel, flops: float, moved: float, dtype: str) -> None:
        duration = roofline.duration_ns(
            self.chip, flops, moved * kernel.passes, dtype, tensor_cores=kernel.tensor_cores
        )
        self.device.launch(
            kernel.name,
            kernel.grid,
            kernel.block,
            registers_per_thread=kernel.registers,
            dynamic_shared_memory=kernel.shared_memory,
            duration_ns=duration,
        )


def _tensors(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _tensors(v)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


@lru_cache(maxsize=4096)
def _launches(func: Any) -> bool:
    """False for views: their results alias an argument that they do not write."""
    if func.namespace not in ("aten", "prims", "mkldnn", "quantized"):
        return False
    return not any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)


def _flops(func: Any, op: str, args: Any, kwargs: Any, out: Any, numel: int) -> float:
    """torch's own FLOP formula where it has one; attention on the CPU by shape; otherwise one operation an element."""
    formula = flop_registry.get(func.overloadpacket)
    if formula is not None:
        return float(formula(*args, **kwargs, out_val=out))
    if "attention" in op:
        query, key = [t for t in _tensors(args) if t.dim() == 4][:2]
        batch, heads, q, size = query.shape
        products = 5 if "backward" in op else 2
        return float(products * 2 * batch * heads * q * key.shape[-2] * size)
    if op in CONVOLUTIONS:
        weight = next((t for t in list(_tensors(args))[1:] if t.dim() >= 3), None)
        return 2.0 * numel * math.prod(weight.shape[1:]) if weight is not None else float(numel)
    return float(numel)
