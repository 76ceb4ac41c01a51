"""PyTorch on the simulated GPU: an ordinary CPU script, whose operators also launch simulated kernels.

The script is unchanged and computes its real results: the operator runs first, untouched, then the model is asked what a
GPU would have run for it (``operators``), and that is launched on the simulated device. All CPU tensors count as device
tensors. The same call on the same shapes is planned once and launched from then on as a prepared array.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from cuptiprof.data.chips import BOARDS
from cuptiprof.sim.pytorch.caching_allocator import SimulatedOutOfMemory
from cuptiprof.sim.pytorch.calls import Array, Call
from cuptiprof.sim.pytorch.device_memory import DeviceMemory
from cuptiprof.sim.pytorch.launches import Copy, KernelWork, Set, Work, duration_ns
from cuptiprof.sim.pytorch.operators import plan
from cuptiprof.sim.pytorch.products import PRODUCTS
from cuptiprof.sim.pytorch.tensor_lists import OptimizerStep
from cuptiprof.sim.sim_device import Flag, Op, SimDevice

_COPY_KINDS = {"HtoD": 1, "DtoH": 2, "DtoD": 8}  # CUpti_ActivityMemcpyKind
_PLANNED_LIMIT = 1 << 16
"""Distinct calls kept ready; a script with ever new shapes starts over rather than grow."""


class _Operator:
    """What is known of an aten operator before it is called."""

    __slots__ = ("composite", "launches", "name", "pointwise", "product")

    def __init__(self, func: Any) -> None:
        schema = func._schema
        self.name: str = schema.name.rpartition("::")[2]
        # A result that aliases an argument without writing it is a view.
        view = any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)
        self.launches = func.namespace in ("aten", "prims", "mkldnn", "quantized", "torchvision") and (
            not view or self.name == "lift_fresh"
        )
        self.composite = torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")
        self.pointwise = torch.Tag.pointwise in func.tags
        self.product = self.name in PRODUCTS


class TorchSimulation:
    """What the modes of all threads share: the device, what is prepared, and what the model did not know.

    Attributes:
        process: operators run as if nothing were there in any other (a data loader's worker has no simulated device).
        unmodelled: calls by operator name that were taken as element-wise, or that the model failed on.
        compiled_calls: of functions of torch.compile, which ran as they were written.
        memory: what operators allocate.
    """

    def __init__(self, device: SimDevice, chip: str) -> None:
        self.device = device
        self.chip = BOARDS[chip]
        self.process = os.getpid()
        self.unmodelled: Counter[str] = Counter()
        self.compiled_calls = 0
        self.memory = DeviceMemory()
        self._operators: dict[Any, _Operator] = {}
        self._planned: dict[Any, tuple[Call, Callable[[], None] | None, bool]] = {}

    def compiled_call(self) -> None:
        """One more."""
        if self.active:
            self.compiled_calls += 1

    def operator(self, func: Any) -> _Operator:
        found = self._operators.get(func)
        if found is None:
            found = self._operators[func] = _Operator(func)
        return found

    def ran(self, func: Any, args: Any, kwargs: Any, out: Any, mode: TorchSimMode) -> None:
        """Launch what a GPU would have run for an operator that has just run here, under `mode`."""
        operator = self.operator(func)
        step = mode.step
        if not operator.launches:
            if step is not None and operator.name == "_record_function_exit":
                mode.finish_step()  # the step raised: its after-hook was not called, its profiler range is left
            return
        key: list[Any] = [func]
        if not _describe(args, key) or not _describe(out, key) or (kwargs and not _describe([*kwargs.values()], key)):
            return  # not on the CPU: meta or fake tensors, which have no work
        tf32 = (False, True)
        if operator.product:
            tf32 = (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32)
            key.append(tf32)
        planned = self._planned.get(frozen := tuple(key))
        if planned is None:
            if len(self._planned) >= _PLANNED_LIMIT:
                self._planned.clear()
            outputs = _with_arrays(out if isinstance(out, (list, tuple)) else (out,))
            results = tuple(a for a in outputs if isinstance(a, Array))
            arguments = (_with_arrays(args), _with_arrays(kwargs or {}))
            call = Call(operator.name, *arguments, results, self.chip, operator.pointwise, *tf32)
            work, known = plan(call)
            planned = self._planned[frozen] = (call, self.prepare(work), known)
        call, launch, known = planned
        if step is not None:
            if not any(a.shape for a in (*call.inputs, *call.outputs)):
                return  # step counters, which a GPU's optimizer keeps on the host
            if operator.pointwise and operator.name != "clone":
                step.add(call)
                return
        if not known:
            self.unmodelled[operator.name] += 1
        if launch is not None:
            launch()

    @property
    def active(self) -> bool:
        """False after `stop`, and in a forked child."""
        return self.process == os.getpid()

    def stop(self) -> None:
        """From now on operators launch nothing, on any thread."""
        self.process = 0

    def prepare(self, work: list[Work]) -> Callable[[], None] | None:
        """A function that launches `work`; None: there is none."""
        return self.device.prepare(np.concatenate([self._op(w) for w in work])) if work else None

    def _op(self, work: Work) -> Any:
        fields: dict[str, Any] = {"duration_ns": duration_ns(self.chip, work)}
        if isinstance(work, KernelWork):
            fields |= {"name": work.name, "grid": work.grid, "block": work.block}
            fields |= {"registers_per_thread": work.registers, "dynamic_shared_memory": work.shared}
            return self.device.ops(1, Op.KERNEL, **fields)
        if isinstance(work, Copy):
            kind = _COPY_KINDS[work.kind]
            return self.device.ops(1, Op.MEMCPY, flags=Flag.ASYNC, copy_kind=kind, bytes=work.bytes, **fields)
        if isinstance(work, Set):
            return self.device.ops(1, Op.MEMSET, flags=Flag.ASYNC, bytes=work.bytes, **fields)
        return self.device.ops(1, Op.SYNC_STREAM)


class TorchSimMode(TorchDispatchMode):  # type: ignore[misc]  # torch is optional and not followed
    """The simulation on one thread (torch keeps a stack of modes for each)."""

    def __init__(self, simulation: TorchSimulation) -> None:
        super().__init__()
        self.simulation = simulation
        self.step: OptimizerStep | None = None
        self._first = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        simulation = self.simulation
        if (
            simulation.active and simulation.operator(func).composite
        ):  # in inference mode: what it is made of is to be seen
            _python_dispatch._push_mode(self)
            try:
                return func.decompose(*args, **(kwargs or {}))
            finally:
                _python_dispatch._pop_mode()
        out = func(*args, **kwargs) if kwargs else func(*args)
        if simulation.active:
            try:
                arguments = () if simulation.operator(func).name == "lift_fresh" else (args, kwargs)
                simulation.memory.ran(arguments, out, _is_of_the_device)
                simulation.ran(func, args, kwargs, out, self)
            except SimulatedOutOfMemory as e:
                raise torch.cuda.OutOfMemoryError(str(e)) from None  # as on a GPU
            except Exception:
                # The program must not notice: an operator that the model cannot describe is counted, nothing else.
                simulation.unmodelled[str(func)] += 1
        return out

    def finish_step(self) -> None:
        """Launch what the optimizer step has gathered."""
        step, self.step = self.step, None
        launch = self.simulation.prepare(step.work()) if step is not None else None
        if launch is not None:
            launch()

    def enter(self, *, first: bool) -> None:
        """Switch on for the calling thread. `first`: of the session (torch's process-wide flags follow that one)."""
        self._first = first
        if first:
            self.__enter__()
        else:
            _python_dispatch._push_mode(self)

    def leave(self) -> None:
        """Switch off for the calling thread, also from below modes that the program has entered since."""
        if self not in _python_dispatch._get_current_dispatch_mode_stack():
            return
        above = []
        while _python_dispatch._get_current_dispatch_mode() is not self:
            above.append(_python_dispatch._pop_mode())
        if self._first:
            self.__exit__(None, None, None)
        else:
            _python_dispatch._pop_mode()
        for mode in reversed(above):
            _python_dispatch._push_mode(mode)


def import_early() -> None:
    """Have torch import now what its first operator under a mode imports (800 modules): not in a region of the program's.

    Where modes of the program are on, it has, and they shall not see an operator of ours.
    """
    if _python_dispatch._get_current_dispatch_mode_stack():
        return
    off = TorchSimulation(SimDevice(), next(iter(BOARDS)))
    off.stop()
    mode = TorchSimMode(off)
    mode.enter(first=True)
    try:
        torch.empty(0)
    finally:
        mode.leave()


def leave_stale() -> None:
    """Remove modes that an earlier session left on this thread because it was stopped on another."""
    for mode in _python_dispatch._get_current_dispatch_mode_stack():
        if isinstance(mode, TorchSimMode) and not mode.simulation.active:
            mode.leave()


def _current() -> TorchSimMode | None:
    for mode in reversed(_python_dispatch._get_current_dispatch_mode_stack()):
        if isinstance(mode, TorchSimMode) and mode.simulation.active:
            return mode
    return None


def _before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    mode = _current()
    closure = kwargs.get("closure") or (args[1] if len(args) > 1 else None)  # args[0] is the optimizer
    # As torch decides on a GPU: by default over lists, unless the user chose otherwise.
    lists = all(
        g.get("foreach", False) is None and not g.get("fused") and not g.get("differentiable")
        for g in optimizer.param_groups
    )
    if mode is not None and lists and closure is None:
        mode.step = OptimizerStep(sum(p.grad is not None for g in optimizer.param_groups for p in g["params"]))


def _after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    mode = _current()
    if mode is not None:
        mode.finish_step()


def optimizer_hooks() -> list[Any]:
    """Optimizer steps are launched over lists of tensors, as on a GPU, until these are removed."""
    return [register_optimizer_step_pre_hook(_before_step), register_optimizer_step_post_hook(_after_step)]


def _is_of_the_device(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.is_cpu
        and value.layout is torch.strided
        and type(value).__name__ != "FakeTensor"
    )


def _describe(value: Any, key: list[Any]) -> bool:
    """Append to `key` what tells this value from others; False: a tensor that is not on the CPU.

    Not floats: a learning rate that changes with every step would make every call a new one.
    """
    if isinstance(value, torch.Tensor):
        if not value.is_cpu or type(value).__name__ == "FakeTensor":
            return False
        key += (value.shape, value.dtype, value.stride() if value.layout is torch.strided else None)
    elif isinstance(value, (list, tuple)):
        key.append(len(value))
        return all(_describe(v, key) for v in value)
    elif value is None or isinstance(value, (bool, int, str)):
        key.append(value)
    return True


def _with_arrays(value: Any) -> Any:
    """The same nesting with :class:`Array` in place of tensors."""
    if isinstance(value, torch.Tensor):
        strides = tuple(value.stride()) if value.layout is torch.strided else None
        return Array(tuple(value.shape), str(value.dtype).removeprefix("torch."), strides)
    if isinstance(value, (list, tuple)):
        return tuple(_with_arrays(v) for v in value)
    return {k: _with_arrays(v) for k, v in value.items()} if isinstance(value, dict) else value
