"""Which kernels run on tensor cores, and which operators could."""

from __future__ import annotations

import numpy as np

from cuptiprof.analysis.work.gpu_work import kernel_names
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table

# TensorBoard's plugin for torch.profiler knows tensor core kernels by these pieces of their names ...
_BY_PLUGIN = (
    "h884",
    "s884",
    "h1688",
    "s1688",
    "hmma",
    "i8816",
    "16816",
    "dgrad_1x1_stride_2x2",
    "first_layer_wgrad_kernel",
    "conv1x1",
    "conv2d_c1_k1",
    "direct_group",
    "xmma_implicit_gemm",
    "xmma_sparse_conv",
    "xmma_warp_specialized_implicit_gemm",
    "xmma_gemm",
    "xmma_sparse_gemm",
    "c1688",
)
# ... and misses CUTLASS 3 on Hopper and after, and flash attention.
_NEWER = ("gmma", "tensorop", "cutlass3x", "mma_", "flash_fwd_kernel", "flash_bwd_", "fmha_cutlass")

_ELIGIBLE = frozenset(
    {
        "aten::conv1d",
        "aten::conv2d",
        "aten::conv3d",
        "aten::conv_tbc",
        "aten::conv_transpose1d",
        "aten::conv_transpose2d",
        "aten::conv_transpose3d",
        "aten::convolution",
        "aten::_convolution",
        "aten::cudnn_convolution",
        "aten::cudnn_convolution_transpose",
        "aten::convolution_backward",
        "aten::prelu",
        "aten::addmm",
        "aten::addmv",
        "aten::addr",
        "aten::matmul",
        "aten::mm",
        "aten::mv",
        "aten::linear",
        "aten::addbmm",
        "aten::baddbmm",
        "aten::bmm",
        "aten::chain_matmul",
        "aten::linalg_multi_dot",
        "aten::thnn_conv2d",
        "aten::lstm_cell",
        "aten::gru_cell",
        "aten::rnn_tanh_cell",
        "aten::rnn_relu_cell",
    }
)

_COUNTERS = ("pipe_tensor", "tensor_precision_fu", "tensor_fu", "ops_path_tensor")
"""pieces of the names of metrics that count tensor core work"""


def is_eligible(operator: str) -> bool:
    """Tensor cores could do what this operator does, given types and sizes that they take."""
    return operator in _ELIGIBLE


def on_tensor_cores(result: Result) -> Array:
    """Mask of ``kernels``: those for which a counter of tensor cores was above 0; where none was read, by their names."""
    kernels = result.kernels
    ids = kernel_names(kernels, True)
    found = np.array([_named(name) for name in ids.names], bool)[ids.ids] if len(kernels) else np.zeros(0, bool)
    for value in _counters(kernels):
        found = np.where(np.isnan(value), found, value > 0)
    return found


def with_tensor_counter(result: Result) -> Array:
    """Mask of ``kernels``: those of which a counter says whether they ran on tensor cores."""
    found = np.zeros(len(result.kernels), bool)
    for value in _counters(result.kernels):
        found |= ~np.isnan(value)
    return found


def _counters(kernels: Table) -> list[Array]:
    return [kernels[metric] for metric in kernels.counters or () if any(piece in metric for piece in _COUNTERS)]


def tensor_core_ns(result: Result, work: Table) -> Array:
    """Durations of the rows of a table of GPU work, 0 for what is no kernel on tensor cores; int64."""
    if work.name != "kernels":
        return np.zeros(len(work), np.int64)
    return np.where(on_tensor_cores(result), work["duration"], 0)


def _named(kernel: str) -> bool:
    return any(piece in kernel for piece in (*_BY_PLUGIN, *_NEWER))
