"""What a GPU runs for an operator: a table of families, and the few operators that need more than a row of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cuptiprof.sim.pytorch.calls import Array, Call
from cuptiprof.sim.pytorch.launches import Copy, KernelWork, Set, Wait, Work, grid, kernel_name
from cuptiprof.sim.pytorch.products import PRODUCTS
from cuptiprof.sim.pytorch.tensor_lists import list_launches

_INDICES = ("int64", "int32")


@dataclass(frozen=True)
class Family:
    """Operators that run the same kernels, whose work follows from the sizes of their tensors alone.

    Attributes:
        kernels: names of functions; `{op}` is the operator, `{direction}` forward or backward. Several share the work.
        elements: of the largest tensor, that a block goes over; rows: instead, rows (the last dimension) a block.
        operations: an element; passes: how often the tensors are gone over; reads: inputs too, not only results.
        access: "random" goes by indices: only the elements that they name are moved, there and back.
        fills: the result is zeroed first; waits: bytes that the host reads back at the end, and waits for.
    """

    kernels: str
    elements: int = 256
    rows: int = 0
    threads: int = 256
    registers: int = 32
    operations: float = 1
    passes: float = 1
    reads: bool = True
    access: str = "stream"
    fills: bool = False
    waits: int = 0

    def plan(self, call: Call) -> list[Work]:
        """The launches of `call`."""
        main, written = call.main, call.outputs or (call.out,)
        moved = self.passes * sum(a.bytes for a in (call.inputs + written if self.reads else written))
        if self.access == "random":
            main, indices = _indexed(call)
            moved = 2 * main.bytes + indices
        if not main.numel:
            return []
        blocks = grid(main.numel // main.row, self.rows) if self.rows else grid(main.numel, self.elements)
        names = self.kernels.format(
            op=call.op.strip("_"), direction="backward" if "backward" in call.op else "forward"
        ).split()
        kernels: list[Work] = [
            KernelWork(
                kernel_name(name, call.op, call.out.dtype), blocks, (self.threads, 1, 1), self.registers,
                operations=self.operations * main.numel / len(names), moved=moved / len(names), access=self.access,
            )
            for name in names
        ]  # fmt: skip
        after: list[Work] = [Copy("DtoH", self.waits), Wait()] if self.waits else []
        return [*(_fill(call) if self.fills else []), *kernels, *after]


def _indexed(call: Call) -> tuple[Array, int]:
    """What is read or written by index (rows of a table, not the table), and the bytes of the indices."""
    indices = [a for a in call.inputs[1:] if a.dtype in _INDICES]
    data = (*call.inputs[:1], *(a for a in call.inputs[1:] if a.dtype not in _INDICES and a.shape), *call.outputs)
    return min(data, key=lambda a: a.numel), sum(a.bytes for a in indices)


def _fill(call: Call) -> list[Work]:
    name = kernel_name("vectorized_elementwise_kernel", "fill", call.out.dtype)
    return [KernelWork(name, grid(call.out.numel, 512), moved=call.out.bytes)] if call.out.numel else []


def _elementwise(call: Call, op: str = "") -> list[Work]:
    """Every input read once, every output written once."""
    work = call.main
    if not call.out.numel:
        return []
    # Vector loads need every tensor laid out alike, without gaps: no broadcast, no transposition.
    tensors = [a for a in (*call.inputs, *call.outputs) if a.numel > 1]
    vectorized = all(a.dense and a.shape == work.shape and a.layout == work.layout for a in tensors)
    name = kernel_name(f"{'vectorized_' if vectorized else ''}elementwise_kernel", op or call.op, call.out.dtype)
    blocks = grid(work.numel, 512 if vectorized else 256)
    return [KernelWork(name, blocks, operations=0 if op else work.numel, moved=call.moved)]


def _reduce(call: Call) -> list[Work]:
    """A warp or block an output; a few outputs of much input share blocks and need a zeroed semaphore each."""
    source, out = call.inputs[0], call.out
    if not source.numel:
        return []
    length = max(1, source.numel // max(1, out.numel))
    rows = 16 if length <= 1024 else 1
    x = -(-max(1, out.numel) // rows)
    y = min(64, max(1, length // 65536)) if x < 64 else 1
    kernel = KernelWork(
        kernel_name("reduce_kernel", call.op, source.dtype), (x, y, 1), (32, 16, 1), shared=16 if rows > 1 else 4096,
        operations=source.numel, moved=source.bytes + out.bytes, access="reduce",
    )  # fmt: skip
    return [Set(4 * x), kernel] if y > 1 else [kernel]


def _copy(call: Call) -> list[Work]:
    """cudaMemcpyAsync where source and destination are laid out alike, else a kernel."""
    out = call.out
    source = call.inputs[-1] if call.op.startswith("copy") else call.inputs[0]
    if not out.numel:
        return []
    if source.dtype == out.dtype and source.shape == out.shape and source.dense and source.layout == out.layout:
        return [Copy("DtoD", out.bytes)]
    op = "direct_copy" if source.dtype == out.dtype else f"{out.dtype}_copy"
    return _elementwise(Call(call.op, (source,), {}, (out,), call.chip), op)


def _index(call: Call) -> list[Work]:
    """A boolean index is turned into positions first, which waits for the GPU."""
    family = Family("index_elementwise_kernel", 512, registers=40, access="random")
    masks = [a for a in call.inputs[1:] if a.dtype in ("bool", "uint8")]
    work = [w for mask in masks for w in _NONZERO.plan(Call("nonzero", (mask,), {}, (), call.chip))]
    return work + family.plan(call)


def _batch_norm(call: Call) -> list[Work]:
    training = call.argument(5, "training", True) and not call.op.endswith("no_training")
    return Family(f"cudnn::bn_fw_{'tr' if training else 'inf'}_1C11", 2048, operations=8, access="reduce").plan(call)


_CUB = "at_cuda_detail::cub::Device"
_NONZERO = Family(f"{_CUB}SelectSweepKernel", 1024, threads=128, registers=48, passes=2, waits=4)

_FAMILIES: dict[str, Family | Callable[[Call], list[Work]]] = {
    # Nothing to do for a GPU.
    """empty empty_like empty_strided new_empty new_empty_strided set_ resize_ resize_as_ _unsafe_view _reshape_alias
    is_same_size is_pinned record_stream _assert_async _assert_scalar _linalg_check_errors result_type size stride lift detach_
    sym_size sym_stride sym_numel sym_storage_offset _efficientzerotensor unsafe_split unsafe_split_with_sizes
    unsafe_chunk""": lambda call: [],
    "zeros ones full zero_ fill_ fill zeros_like ones_like full_like scalar_tensor new_zeros new_ones new_full": _fill,
    "arange linspace logspace eye tril_indices triu_indices": Family("elementwise_kernel_with_index", reads=False),
    "clone copy_ copy _to_copy _copy_from": _copy,
    # torch.tensor(data): a copy from pageable memory, which waits; item().
    "lift_fresh": lambda call: [Copy("HtoD", call.out.bytes), Wait()] if call.out.numel else [],
    "_local_scalar_dense": lambda call: [Copy("DtoH", call.inputs[0].itemsize), Wait()],
    """sum mean amax amin max min argmax argmin any all norm linalg_vector_norm var std var_mean std_mean prod nansum
    count_nonzero aminmax median nanmedian mode kthvalue logsumexp""": _reduce,
    "equal": Family("vectorized_elementwise_kernel reduce_kernel", 512, waits=1),
    "cumsum cumprod logcumsumexp cummax cummin": Family("tensor_kernel_scan_innermost_dim", rows=2, access="reduce"),
    # A radix sort goes over its keys once for each 8 bits of them.
    "sort argsort msort randperm": Family(f"{_CUB}RadixSortOnesweepKernel", 3840, passes=4),
    "_unique2 unique_dim unique_consecutive": Family(f"{_CUB}SelectSweepKernel", 3840, passes=5, waits=8),
    "topk": Family("sbtopk::gatherTopK", rows=1, threads=1024, passes=5),
    "nonzero": _NONZERO,
    "index take _unsafe_index index_put_ index_put _index_put_impl_ _unsafe_index_put": _index,
    "embedding index_select": Family("vectorized_gather_kernel", 1024, access="random"),
    "embedding_dense_backward": Family("embedding_backward_feature_kernel", 1024, access="random", fills=True),
    """gather scatter_ scatter scatter_add_ scatter_add scatter_reduce scatter_reduce_ index_add_ index_add index_copy_
    index_copy index_fill_ index_fill""": Family("_scatter_gather_elementwise_kernel", 1024, threads=128, access="random"),
    "cat stack": Family("CatArrayBatchedCopy", 4096, threads=512, operations=0),
    # A Philox number takes about 40 integer operations.
    """rand rand_like uniform_ randn randn_like normal_ normal randint random_ randint_like bernoulli_ bernoulli exponential_
    log_normal_ cauchy_ geometric_ multinomial""":
        Family("distribution_elementwise_grid_stride_kernel", 1024, registers=64, operations=40, reads=False),
    "native_dropout": Family("fused_dropout_kernel_vec", 1024, registers=48, operations=40),
    "_softmax _log_softmax _safe_softmax _softmax_backward_data _log_softmax_backward_data":
        Family("softmax_warp_{direction}", rows=4, threads=128, registers=40, operations=5),
    "native_layer_norm _fused_rms_norm rms_norm native_group_norm": Family("vectorized_{op}_kernel", rows=1, operations=8),
    "native_layer_norm_backward _fused_rms_norm_backward native_group_norm_backward":
        Family("{op}_grad_input_kernel GammaBetaBackwardCUDAKernel", rows=4, operations=14, passes=1.5),
    "native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training": _batch_norm,
    "native_batch_norm_backward":
        Family("cudnn::bn_bw_1C11", 2048, threads=512, operations=12, passes=1.5, access="reduce"),
    "nll_loss_forward nll_loss_backward nll_loss2d_forward nll_loss2d_backward":
        Family("nll_loss_{direction}_reduce_cuda_kernel_2d", 1024, reads=False),
    "mse_loss binary_cross_entropy smooth_l1_loss huber_loss soft_margin_loss kl_div":
        Family("vectorized_elementwise_kernel reduce_kernel", 512),
    """max_pool2d_with_indices max_pool2d_with_indices_backward max_pool3d_with_indices
    max_pool3d_with_indices_backward""": Family("max_pool_{direction}_nchw", operations=9),
    "mv addmv dot vdot": Family("gemv2T_kernel_val", 1024, threads=128, registers=60, operations=2),
    "slice_backward select_backward diagonal_backward unfold_backward": Family("elementwise_kernel", fills=True),
    # Once over all tensors, one thread an output.
    """avg_pool2d avg_pool2d_backward avg_pool3d avg_pool3d_backward _adaptive_avg_pool2d _adaptive_avg_pool2d_backward
    _adaptive_avg_pool3d _adaptive_avg_pool3d_backward adaptive_max_pool2d adaptive_max_pool2d_backward tril triu tril_ triu_
    upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d
    upsample_nearest2d_backward upsample_bilinear2d_backward grid_sampler_2d grid_sampler_2d_backward im2col col2im unfold
    constant_pad_nd reflection_pad1d reflection_pad2d replication_pad2d glu glu_backward flip roll repeat repeat_interleave
    mse_loss_backward smooth_l1_loss_backward huber_loss_backward binary_cross_entropy_backward
    binary_cross_entropy_with_logits _weight_norm_interface _weight_norm_interface_backward histc bincount searchsorted
    bucketize cdist _cdist_forward _cdist_backward _pdist_forward trace diag_embed renorm index_reduce_ masked_select
    _fake_quantize_learnable_per_tensor_affine""": Family("{op}_out_frame", operations=4),
}  # fmt: skip

OPERATORS: dict[str, Callable[[Call], list[Work]]] = {
    operator: family.plan if isinstance(family, Family) else family
    for operators, family in _FAMILIES.items()
    for operator in operators.split()
} | PRODUCTS
"""Operator -> what a GPU would run for it."""


def plan(call: Call) -> tuple[list[Work], bool]:
    """What a GPU runs for `call`, and whether the model knows the operator.

    An unknown operator is taken as element-wise: every input read once, every output written once.
    """
    if not (call.inputs or call.outputs):
        return [], True
    if call.op in OPERATORS:
        return OPERATORS[call.op](call), True
    if call.op.startswith(("_foreach_", "_fused_")):
        return list_launches(call), True
    return _elementwise(call), call.pointwise
