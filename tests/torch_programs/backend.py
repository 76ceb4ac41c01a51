"""The device "simgpu": privateuseone in Python. Its memory is the host's, its operators compute there and launch on the simulated GPU.

What has a kernel for the CPU has one here; what torch makes of other operators (convolution, copies, foreach) it makes here, too. A
tensor is torch's own, with a storage of no bytes of which the Python object holds the memory: views, detached and saved tensors share the storage.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

from cuptiprof.sim.pytorch.dispatch_mode import TorchSimulation
from torch_programs import recurrent

NAME = "simgpu"
_KEY = "PrivateUse1"
_META = torch._C.DispatchKeySet(torch._C.DispatchKey.Meta)
_SHAPES = {"aten::empty.memory_format", "aten::empty_strided", "aten::as_strided", "aten::as_strided_", "aten::resize_"}


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """The memory of a tensor of the device, as a tensor of the CPU."""
    memory = tensor.untyped_storage().memory  # type: ignore[attr-defined]
    host = torch.empty(0, dtype=tensor.dtype)
    return host.set_(memory, tensor.storage_offset(), tensor.size(), tensor.stride())


def on_device(host: torch.Tensor) -> torch.Tensor:
    """A tensor of the device that has this memory."""
    empty = torch._C._acc.create_empty_tensor((0,), host.dtype)
    empty.untyped_storage().memory = host.untyped_storage()
    return _like(empty, host)


def _like(tensor: torch.Tensor, host: torch.Tensor) -> torch.Tensor:
    """A view of the tensor's storage, of the layout of `host`."""
    as_strided = torch.ops.aten.as_strided.default
    return as_strided.redispatch(_META, tensor, host.size(), host.stride(), host.storage_offset())


def _is_ours(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == NAME


class _Module(_DummyBackendModule):
    """torch.simgpu, as autocast and checkpoints ask for it."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]


class _Silent:
    """What the host computes for the device is no operator of the program's."""

    def __enter__(self) -> None:
        torch.autograd._enable_record_function(False)

    def __exit__(self, *error: object) -> None:
        torch.autograd._enable_record_function(True)


class Backend:
    """Registers the device. One a process."""

    def __init__(self, simulation: TorchSimulation) -> None:
        self._simulation = simulation
        self._library = torch.library.Library("aten", "IMPL")
        self.step = None  # as the simulation's mode has one: operators of optimizers are launched one by one
        self.current = _Current()

    def register(self) -> None:
        _setup_privateuseone_for_python_backend(NAME, backend_module=_Module())
        has = torch._C._dispatch_has_kernel_for_dispatch_key
        for name in torch._C._dispatch_get_all_op_names():
            if name.startswith("aten::") and has(name, "CPU") and name not in _SHAPES:
                self._on(name, self._computing(_overload(name)))
        for name, kernel in (
            ("aten::empty.memory_format", self._empty),
            ("aten::empty_strided", self._empty_strided),
            ("aten::as_strided", self._as_strided),
            ("aten::as_strided_", self._restride),
            ("aten::resize_", self._resize),
            ("aten::_copy_from", self._copy_from),
            ("aten::_copy_from_and_resize", self._copy_from),
            ("aten::convolution_overrideable", self._convolution),
            ("aten::convolution_backward_overrideable", self._convolution_backward),
        ):
            self._on(name, kernel)
        for name, compute in (
            ("aten::_thnn_fused_lstm_cell", recurrent.lstm_cell),
            ("aten::_thnn_fused_lstm_cell_backward_impl", recurrent.lstm_cell_backward),
            ("aten::_thnn_fused_gru_cell", recurrent.gru_cell),
            ("aten::_thnn_fused_gru_cell_backward", recurrent.gru_cell_backward),
        ):
            self._on(name, self._computing(_overload(name), compute))

    def _on(self, name: str, kernel: Callable[..., Any]) -> None:
        self._library.impl(name.removeprefix("aten::"), kernel, _KEY)

    def run(self, name: str, modelled: Any, compute: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Compute on the host, launch what a GPU would have run, and return the results on the device.

        Args:
            name: the operator that reached the device, "aten::mm".
            modelled: the one of which the model knows what a GPU runs.
        """
        ours: dict[int, torch.Tensor] = {}

        def host_of(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                if value.device.type != NAME:
                    return value
                host = on_host(value)
                ours[id(host)] = value
                hosts.append(host)
                return host
            if isinstance(value, (list, tuple)):
                return type(value)(host_of(v) for v in value)
            if isinstance(value, torch.device):
                return torch.device("cpu")
            return value

        def device_of(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                if id(value) in ours:
                    return ours[id(value)]
                for host in hosts:
                    if host.untyped_storage()._cdata == value.untyped_storage()._cdata:
                        return _like(ours[id(host)], value)
                return on_device(value)
            if isinstance(value, (list, tuple)):
                return type(value)(device_of(v) for v in value)
            return value

        hosts: list[torch.Tensor] = []
        with _Silent():
            host_args, host_kwargs = host_of(tuple(args)), {k: host_of(v) for k, v in kwargs.items()}
            out = compute(*host_args, **host_kwargs)
            for host in hosts:
                if (tensor := ours[id(host)]).shape != host.shape:  # an out= that the operator gave its size
                    tensor.data = on_device(host)
            result = device_of(out)
        self.current.operator = name
        try:
            self._simulation.ran(modelled, host_args, host_kwargs, out, self)  # type: ignore[arg-type]
        finally:
            self.current.operator = ""
        return result

    def _computing(self, overload: Any, compute: Callable[..., Any] | None = None) -> Callable[..., Any]:
        def kernel(*args: Any, **kwargs: Any) -> Any:
            return self.run(overload._schema.name, overload, compute or overload, args, kwargs)

        return kernel

    def _empty(self, size: Any, dtype: Any = None, memory_format: Any = None, **unused: Any) -> torch.Tensor:
        with _Silent():
            format_ = torch.contiguous_format if memory_format is None else memory_format
            return on_device(torch.empty(size, dtype=dtype, memory_format=format_))

    def _empty_strided(self, size: Any, stride: Any, dtype: Any = None, **unused: Any) -> torch.Tensor:
        with _Silent():
            return on_device(torch.empty_strided(size, stride, dtype=dtype))

    def _as_strided(self, tensor: torch.Tensor, size: Any, stride: Any, storage_offset: Any = None) -> torch.Tensor:
        offset = tensor.storage_offset() if storage_offset is None else storage_offset
        with _Silent():
            return torch.ops.aten.as_strided.default.redispatch(_META, tensor, size, stride, offset)

    def _restride(self, tensor: torch.Tensor, size: Any, stride: Any, storage_offset: Any = None) -> torch.Tensor:
        tensor.data = self._as_strided(tensor, size, stride, storage_offset)
        return tensor

    def _resize(self, tensor: torch.Tensor, size: Any, memory_format: Any = None) -> torch.Tensor:
        if tensor.shape != torch.Size(size):
            with _Silent():
                tensor.data = on_device(on_host(tensor).resize_(size))
        return tensor

    def _copy_from(self, source: torch.Tensor, to: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
        """To, from or on the device."""
        copy = torch.ops.aten.copy_.default
        if _is_ours(to):
            return self.run("aten::_copy_from", copy, copy, (to, source), {})
        return self.run("aten::_copy_from", copy, lambda source, to: to.copy_(source), (source, to), {})

    def _convolution(self, *args: Any) -> torch.Tensor:
        convolution = torch.ops.aten.convolution.default
        return self.run("aten::convolution_overrideable", convolution, convolution, args, {})

    def _convolution_backward(self, gradient: Any, x: Any, weight: Any, stride: Any, padding: Any, dilation: Any,
                              transposed: Any, output_padding: Any, groups: Any, output_mask: Any) -> Any:  # fmt: skip
        backward = torch.ops.aten.convolution_backward.default
        bias = [weight.shape[1 if transposed else 0] * (groups if transposed else 1)] if output_mask[2] else None
        args = (gradient, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups, output_mask)
        return self.run("aten::convolution_backward_overrideable", backward, backward, args, {})


class _Current(threading.local):
    operator = ""


def _overload(name: str) -> Any:
    base, _, overload = name.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, base), overload or "default")
