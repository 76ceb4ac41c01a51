"""PyTorch on the simulated GPU: an ordinary CPU script, whose operators also launch simulated kernels.

The script is unchanged and computes its real results: the operator runs first, untouched, then the model is asked what a
GPU would have run for it (``torch_model``), and that is launched on the simulated device. All CPU tensors count as device
tensors. The same call on the same shapes is planned once and launched from then on as a prepared array.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from cuptiprof.sim import torch_model
from cuptiprof.sim.device import Flag, Op, SimDevice
from cuptiprof.sim.roofline import CHIPS
from cuptiprof.sim.torch_model import Array, Call, Copy, Kernel, OptimizerStep, Set, Wait, Work
from cuptiprof.sim.torch_work import words

_COPY_KINDS = {"HtoD": 1, "DtoH": 2, "DtoD": 8}  # CUpti_ActivityMemcpyKind
_PREPARED_LIMIT = 1 << 16
"""Distinct calls kept ready; a script with ever new shapes starts over rather than grow."""

_MATMULS = words("mm addmm bmm baddbmm addbmm linear _addmm_activation")
_CONVOLUTIONS = frozenset(("convolution", "convolution_backward", "_convolution"))
# Operators whose numbers (not only tensors) decide what is launched; of others they are left out of the key, since a
# learning rate that changes with every step would make every call a new one.
_NUMBERS_MATTER = _CONVOLUTIONS | words("""_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data native_layer_norm native_layer_norm_backward
    native_batch_norm native_batch_norm_backward native_group_norm index_put_ index_put
    _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward""")


class _Operator:
    """What is known of an aten operator before it is called."""

    __slots__ = ("launches", "name", "numbers", "pointwise", "tf32")

    def __init__(self, func: Any) -> None:
        schema = func._schema
        self.name: str = schema.name.rpartition("::")[2]
        # A result that aliases an argument without writing it is a view.
        view = any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)
        self.launches = (
            func.namespace in ("aten", "prims", "mkldnn", "quantized", "torchvision")
            and (not view or self.name == "lift_fresh")
            and self.name not in torch_model.METADATA
        )
        self.pointwise = torch.Tag.pointwise in func.tags
        self.numbers = self.name in _NUMBERS_MATTER
        self.tf32 = self.name in _MATMULS or self.name in _CONVOLUTIONS


class TorchSimulation:
    """What the modes of all threads share: the device, what is prepared, and what the model did not know.

    Attributes:
        active: False: operators run as if nothing were there.
        unmodelled: calls by operator name that were taken as element-wise, or that the model failed on.
    """

    def __init__(self, device: SimDevice, chip: str) -> None:
        self.device = device
        self.chip = CHIPS[chip]
        self.active = True
        self.unmodelled: Counter[str] = Counter()
        self._operators: dict[Any, _Operator] = {}
        self._prepared: dict[Any, tuple[Any, str]] = {}
        self._calls: dict[Any, Call] = {}  # of optimizer steps

    def ran(self, func: Any, args: Any, kwargs: Any, out: Any, mode: TorchSimMode) -> None:
        """Launch what a GPU would have run for an operator that has just run here, under `mode`."""
        operator = self._operators.get(func)
        if operator is None:
            operator = self._operators[func] = _Operator(func)
        step = mode.step
        if not operator.launches:
            if step is not None and operator.name == "_record_function_exit":
                mode.finish_step()  # the step raised: its after-hook was not called, its profiler range is left
            return
        key: list[Any] = [func]
        if not _describe(args, key, operator.numbers) or not _describe(out, key, False):
            return  # not on the CPU: meta or fake tensors, which have no work
        if kwargs and not _describe(list(kwargs.values()), key, operator.numbers):
            return
        if operator.tf32:
            key.append((torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32))
        frozen = tuple(key)
        if step is not None:
            call = self._calls.get(frozen)
            if call is None:
                call = self._calls[frozen] = _call(operator, args, kwargs, out, self.chip)
            if not any(a.shape for a in (*call.inputs, *call.outputs)):
                return  # step counters, which a GPU's optimizer keeps on the host
            if operator.pointwise and operator.name != "clone":
                step.add(call)
                return
        ready = self._prepared.get(frozen)
        if ready is None:
            work, known = torch_model.plan(_call(operator, args, kwargs, out, self.chip))
            if len(self._prepared) + len(self._calls) >= _PREPARED_LIMIT:
                self._prepared.clear()
                self._calls.clear()
            ready = self._prepared[frozen] = (self._prepare(work), "" if known else operator.name)
        launch, unknown = ready
        if unknown:
            self.unmodelled[unknown] += 1
        if launch is not None:
            launch()

    def run(self, work: list[Work]) -> None:
        """Launch now."""
        launch = self._prepare(work)
        if launch is not None:
            launch()

    def _prepare(self, work: list[Work]) -> Any:
        """A function that launches `work`; None: there is none."""
        if not work:
            return None
        ops = np.concatenate([self._op(w) for w in work])
        return self.device.prepare(ops)

    def _op(self, work: Work) -> Any:
        duration = torch_model.duration_ns(self.chip, work)
        if isinstance(work, Kernel):
            return self.device.ops(
                1,
                Op.KERNEL,
                name=work.name,
                grid=work.grid,
                block=work.block,
                cluster=work.cluster,
                registers_per_thread=work.registers,
                static_shared_memory=work.static_shared,
                dynamic_shared_memory=work.dynamic_shared,
                duration_ns=duration,
            )
        if isinstance(work, Copy):
            kind = _COPY_KINDS[work.kind]
            return self.device.ops(
                1, Op.MEMCPY, flags=Flag.ASYNC, copy_kind=kind, bytes=work.bytes, duration_ns=duration
            )
        if isinstance(work, Set):
            return self.device.ops(1, Op.MEMSET, flags=Flag.ASYNC, bytes=work.bytes, duration_ns=duration)
        assert isinstance(work, Wait)
        return self.device.ops(1, Op.SYNC_STREAM)


class TorchSimMode(TorchDispatchMode):  # type: ignore[misc]  # torch is optional and not followed
    """The simulation on one thread (torch keeps a stack of modes for each)."""

    def __init__(self, simulation: TorchSimulation) -> None:
        super().__init__()
        self.simulation = simulation
        self.step: OptimizerStep | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **kwargs) if kwargs else func(*args)
        simulation = self.simulation
        if simulation.active:
            try:
                simulation.ran(func, args, kwargs, out, self)
            except Exception:
                # The program must not notice: an operator that the model cannot describe is counted, nothing else.
                simulation.unmodelled[str(func)] += 1
        return out

    def finish_step(self) -> None:
        """Launch what the optimizer step has gathered."""
        step, self.step = self.step, None
        if step is not None:
            self.simulation.run(step.work())

    def enter(self, *, first: bool) -> None:
        """Switch on for the calling thread. `first`: of the session (torch's process-wide flags follow that one)."""
        if first:
            self.__enter__()
        else:
            _python_dispatch._push_mode(self)

    def leave(self, *, first: bool) -> bool:
        """Switch off for the calling thread, also from below modes that the program has entered since. False: not there."""
        stack = _python_dispatch._get_current_dispatch_mode_stack()
        if self not in stack:
            return False
        above = []
        while _python_dispatch._get_current_dispatch_mode() is not self:
            above.append(_python_dispatch._pop_mode())
        if first:
            self.__exit__(None, None, None)
        else:
            _python_dispatch._pop_mode()
        for mode in reversed(above):
            _python_dispatch._push_mode(mode)
        return True


def leave_stale() -> None:
    """Remove modes that an earlier session left on this thread because it was stopped on another."""
    for mode in _python_dispatch._get_current_dispatch_mode_stack():
        if isinstance(mode, TorchSimMode) and not mode.simulation.active:
            mode.leave(first=bool(mode.old_dispatch_mode_flags))


def _current() -> TorchSimMode | None:
    for mode in reversed(_python_dispatch._get_current_dispatch_mode_stack()):
        if isinstance(mode, TorchSimMode) and mode.simulation.active:
            return mode
    return None


def _before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    mode = _current()
    if mode is None:
        return
    closure = kwargs.get("closure") or (args[1] if len(args) > 1 else None)  # args[0] is the optimizer
    # As torch decides on a GPU: by default over lists, unless the user chose otherwise.
    lists = all(
        g.get("foreach", False) is None and not g.get("fused") and not g.get("differentiable")
        for g in optimizer.param_groups
    )
    if lists and closure is None:
        count = sum(p.grad is not None for g in optimizer.param_groups for p in g["params"])
        mode.step = OptimizerStep(count)


def _after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    mode = _current()
    if mode is not None:
        mode.finish_step()


@contextmanager
def optimizer_hooks() -> Iterator[None]:
    """Optimizer steps are launched over lists of tensors, as on a GPU, while this is open."""
    handles = [register_optimizer_step_pre_hook(_before_step), register_optimizer_step_post_hook(_after_step)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _describe(value: Any, key: list[Any], numbers: bool) -> bool:
    """Append to `key` what tells this value from others; False: a tensor that is not on the CPU."""
    if isinstance(value, torch.Tensor):
        if not value.is_cpu or type(value).__name__ == "FakeTensor":
            return False
        key.append(value.shape)
        key.append(value.dtype)
        key.append(value.stride() if value.layout is torch.strided else None)
    elif isinstance(value, (list, tuple)):
        key.append(len(value))
        for v in value:
            if not _describe(v, key, numbers):
                return False
    elif value is None or (numbers and isinstance(value, (bool, int, str))):
        key.append(value)
    return True


def _call(operator: _Operator, args: Any, kwargs: Any, out: Any, chip: Any) -> Call:
    outputs = out if isinstance(out, (list, tuple)) else (out,)
    return Call(
        operator.name,
        _with_arrays(tuple(args)),
        _with_arrays(dict(kwargs or {})),
        tuple(a for a in _with_arrays(tuple(outputs)) if isinstance(a, Array)),
        chip,
        operator.pointwise,
        torch.backends.cuda.matmul.allow_tf32,
        torch.backends.cudnn.allow_tf32,
    )


def _with_arrays(value: Any) -> Any:
    """The same nesting with :class:`Array` in place of tensors."""
    if isinstance(value, torch.Tensor):
        strides = tuple(value.stride()) if value.layout is torch.strided else None
        return Array(tuple(value.shape), str(value.dtype).removeprefix("torch."), strides)
    if isinstance(value, tuple):
        return tuple(_with_arrays(v) for v in value)
    if isinstance(value, list):
        return [_with_arrays(v) for v in value]
    if isinstance(value, dict):
        return {k: _with_arrays(v) for k, v in value.items()}
    return value


_here: list[TorchSimulation] = []  # simulations of this process, for a child to switch off


def watch_forks(simulation: TorchSimulation) -> None:
    """A forked child (a data loader's worker) has no simulated device."""
    if not _here:
        os.register_at_fork(after_in_child=_switch_off)
    _here[:] = [simulation]


def _switch_off() -> None:
    for simulation in _here:
        simulation.active = False
