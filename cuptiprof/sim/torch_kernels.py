"""What a GPU runs for an aten operator: element-wise, reductions, indexing, copies, random numbers.

Operators of the libraries (products, convolutions, attention, normalisation) are in ``torch_library``, those over lists of
tensors in ``torch_lists``. Grids, blocks and kernel names follow what torch's profiler shows of eager PyTorch 2 on a GPU;
they are typical, not exact.
"""

from __future__ import annotations

import math

from cuptiprof.sim import torch_names as names
from cuptiprof.sim.torch_work import Array, Call, Copy, Kernel, Set, Wait, Work, blocks, models

_THREADS = 128
_PER_THREAD = 4  # elements
_AT = "at::native::(anonymous namespace)"


def elementwise(
    call: Call, functor: str, work: Array, operands: int, moved: float, *, per_element: float = 1
) -> Kernel:
    """One element-wise kernel over `work.numel` elements."""
    # Vector loads need every tensor laid out alike, without gaps: no broadcast, no transposition.
    tensors = [a for a in (*call.inputs, *call.outputs) if a.numel > 1]
    vectorized = all(a.dense and a.shape == work.shape and a.layout == work.layout for a in tensors)
    name = names.elementwise(functor, operands, vectorized=vectorized)
    return Kernel(
        name,
        blocks(work.numel, _THREADS * (_PER_THREAD if vectorized else 2)),
        (_THREADS, 1, 1),
        registers=26 if vectorized else 32,
        operations=per_element * work.numel,
        moved=moved,
    )


def pointwise(call: Call) -> list[Work]:
    """An operator that torch tags pointwise, and the fallback for the unknown: read every input, write every output."""
    if not call.out.numel:
        return []
    tensors = [a for a in call.inputs if a.shape or len(call.inputs) == 1]
    dtype = tensors[0].dtype if tensors and call.out.dtype == "bool" else call.out.dtype  # comparisons
    functor = names.functor(call.op, dtype, tensors=max(1, len(tensors)))
    return [elementwise(call, functor, call.main, len(tensors) + 1, call.moved)]


@models("zeros ones full zero_ fill_ fill zeros_like ones_like full_like scalar_tensor new_zeros new_ones new_full")
def _fill(call: Call) -> list[Work]:
    out = call.out
    if not out.numel:
        return []
    return [elementwise(call, names.functor("fill", out.dtype), out, 1, out.bytes, per_element=0)]


@models("arange", "linspace", "logspace", "eye", "tril_indices", "triu_indices")
def _index_fill(call: Call) -> list[Work]:
    name = f"void (anonymous namespace)::elementwise_kernel_with_index<int, at::native::{call.op}_cuda_out(c10::Scalar const&, c10::Scalar const&, c10::Scalar const&, at::Tensor&)::{{lambda(long)#1}}>"
    return [Kernel(name, blocks(call.out.numel, 256), (64, 1, 1), moved=call.out.bytes)]


@models("lift_fresh")
def _from_host(call: Call) -> list[Work]:
    """torch.tensor(data): a copy from pageable memory, which waits."""
    return [Copy("HtoD", call.out.bytes), Wait()] if call.out.numel else []


@models("_local_scalar_dense", "item")
def _read(call: Call) -> list[Work]:
    return [Copy("DtoH", call.inputs[0].itemsize), Wait()]


@models("equal")
def _equal(call: Call) -> list[Work]:
    a = call.inputs[0]
    flags = Array(a.shape, "bool")
    compare = elementwise(call, names.functor("eq", a.dtype, tensors=2), a, 3, call.moved + flags.bytes)
    return [compare, *reduce("all", flags, Array((), "bool")), Copy("DtoH", 1), Wait()]


@models("clone", "copy_", "copy", "_to_copy", "_copy_from", "contiguous")
def _copy(call: Call) -> list[Work]:
    """cudaMemcpyAsync where source and destination are laid out alike, else a kernel."""
    out = call.out
    source = call.inputs[-1] if call.op.startswith("copy") and len(call.inputs) > 1 else call.inputs[0]
    if not out.numel:
        return []
    if source.dtype == out.dtype and source.shape == out.shape and source.dense and source.layout == out.layout:
        return [Copy("DtoD", out.bytes)]
    kind = f"cast_{out.dtype}" if source.dtype != out.dtype and out.dtype in ("float16", "bfloat16") else "copy"
    functor = names.functor(kind, out.dtype)
    return [elementwise(call, functor, out, 2, source.bytes + out.bytes, per_element=0)]


def reduce(op: str, source: Array, out: Array) -> list[Work]:
    """Reduce.cuh: a warp or block an output; a few outputs of much input share blocks and need a zeroed semaphore each."""
    if not source.numel:
        return []
    outputs = max(1, out.numel)
    length = max(1, source.numel // outputs)
    name = names.reduction(op, source.dtype)
    moved = source.bytes + out.bytes
    shared = 16 if length <= 1024 else 4096
    if length <= 32:
        return [
            Kernel(
                name, blocks(outputs, 128), (128, 1, 1), 32, 16, operations=source.numel, moved=moved, access="reduce"
            )
        ]
    rows = 16 if length <= 1024 else 1
    x = -(-outputs // rows)
    y = min(64, max(1, length // 65536)) if x < 64 else 1
    kernel = Kernel(
        name, (x, y, 1), (32, rows, 1) if rows > 1 else (512, 1, 1), 32, shared, operations=source.numel, moved=moved,
        access="reduce",
    )  # fmt: skip
    return [Set(4 * x), kernel] if y > 1 else [kernel]


@models(
    """sum mean amax amin max min argmax argmin any all norm linalg_vector_norm var std var_mean std_mean prod nansum
    count_nonzero aminmax median nanmedian mode kthvalue"""
)
def _reduce(call: Call) -> list[Work]:
    return reduce(call.op, call.inputs[0], call.out)


@models("logsumexp")
def _logsumexp(call: Call) -> list[Work]:
    source, out = call.inputs[0], call.out
    exp = elementwise(call, names.functor("exp", source.dtype), source, 2, 2 * source.bytes)
    log = elementwise(call, names.functor("log", source.dtype), out, 2, 2 * out.bytes)
    return [*reduce("amax", source, out), exp, *reduce("sum", source, out), log]


@models("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin")
def _scan(call: Call) -> list[Work]:
    source = call.inputs[0]
    t = names.ctype(call.out.dtype)
    rows = source.numel // max(1, source.shape[-1] if source.shape else 1)
    name = f"void at::native::tensor_kernel_scan_innermost_dim<{t}, std::plus<{t}> >({t}*, {t} const*, unsigned int, unsigned int, unsigned int, {t}, std::plus<{t}>)"
    return [
        Kernel(name, blocks(rows, 2), (256, 2, 1), 32, 8192, operations=source.numel, moved=call.moved, access="reduce")
    ]


def radix_sort(numel: int, key: str, bytes_per_element: int) -> list[Work]:
    """cub::DeviceRadixSort: a histogram, a scan of it, and one pass for each 8 bits of the key."""
    bits = 8 * Array((), key).itemsize
    cub = "at_cuda_detail::cub::DeviceRadixSort"
    policy = f"at_cuda_detail::cub::DeviceRadixSortPolicy<{names.ctype(key)}, at::cuda::cub::detail::OpaqueType<8>, unsigned long long>::Policy900"
    grid = blocks(numel, 256 * 15)
    passes = bits // 8
    out: list[Work] = [
        Kernel(f"void {cub}HistogramKernel<{policy}, false, {names.ctype(key)}, unsigned long long>", grid, (256, 1, 1), 40, 32768, moved=numel * bits // 8),
        Kernel(f"void {cub}ExclusiveSumKernel<{policy}, unsigned long long>", (passes, 1, 1), (256, 1, 1), 32, 8192, moved=passes * 2048),
    ]  # fmt: skip
    onesweep = f"void {cub}OnesweepKernel<{policy}, false, {names.ctype(key)}, at::cuda::cub::detail::OpaqueType<8>, unsigned long long, int, int>"
    out += [Kernel(onesweep, grid, (256, 1, 1), 64, 40000, moved=2 * numel * bytes_per_element) for _ in range(passes)]
    return out


@models("sort", "argsort", "randperm", "_unique2", "unique_dim", "unique_consecutive", "msort")
def _sort(call: Call) -> list[Work]:
    source = call.main
    t = names.ctype(source.dtype)
    row = source.shape[-1] if source.shape else 1
    if row <= 1024 and call.op in ("sort", "argsort", "msort"):
        name = f"void at::native::(anonymous namespace)::sortKeyValueInplace<2, -1, 16, 16, {t}, long, at::native::LTOp<{t}, true>, unsigned int>"
        return [Kernel(name, (max(1, source.numel // row), 1, 1), (16, 16, 1), 40, 8192, moved=2 * call.moved)]
    work = radix_sort(source.numel, source.dtype, source.itemsize + 8)
    if call.op.startswith("_unique") or call.op.startswith("unique"):
        adjacent = Kernel(f"void thrust::THRUST_200302_900_NS::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__unique::UniqueAgent<{t}*, {t}*, thrust::equal_to<{t}>, int, int*> >", blocks(source.numel, 2048), (256, 1, 1), 40, 16384, moved=2 * source.bytes)  # fmt: skip
        work += [adjacent, Copy("DtoH", 8), Wait()]
    return work


@models("topk")
def _topk(call: Call) -> list[Work]:
    source, out = call.inputs[0], call.out
    t = names.ctype(source.dtype)
    rows = max(1, out.numel // max(1, out.shape[-1] if out.shape else 1))
    return [
        Kernel(f"void at::native::sbtopk::gatherTopK<{t}, unsigned int, 2, false>", (rows, 1, 1), (1024, 1, 1), 32, 4352, moved=5 * source.bytes),
        Kernel(f"void at::native::bitonicSortKVInPlace<2, -1, 16, 16, {t}, long, at::native::GTOp<{t}, true>, unsigned int>", blocks(rows, 16), (16, 16, 1), 32, 4096, moved=4 * out.bytes),
    ]  # fmt: skip


@models("nonzero")
def _nonzero(call: Call) -> list[Work]:
    """Two kernels to count, the count to the host, two to select."""
    source = call.inputs[0]
    t = names.ctype(source.dtype)
    cub = "at_cuda_detail::cub"
    grid = blocks(source.numel, 1024)
    return [
        Kernel(f"void {cub}::DeviceReduceKernel<{cub}::DeviceReducePolicy<int, int, {cub}::Sum>::Policy600, {cub}::TransformInputIterator<bool, at::native::NonZeroOp<{t}>, {t}*, long>, int*, int, {cub}::Sum>", grid, (256, 1, 1), 32, 64, moved=source.bytes, access="reduce"),
        Kernel(f"void {cub}::DeviceReduceSingleTileKernel<{cub}::DeviceReducePolicy<int, int, {cub}::Sum>::Policy600, int*, int*, int, {cub}::Sum, int, int>", (1, 1, 1), (256, 1, 1), 32, 64),
        Copy("DtoH", 4),
        Wait(),
        Kernel(f"void {cub}::DeviceCompactInitKernel<{cub}::ScanTileState<int, true>, int*>({cub}::ScanTileState<int, true>, int, int*)", (1, 1, 1), (128, 1, 1), 16),
        Kernel(f"void {cub}::DeviceSelectSweepKernel<{cub}::DispatchSelectIf<{cub}::CountingInputIterator<long, long>, {cub}::TransformInputIterator<bool, at::native::NonZeroOp<{t}>, {t}*, long>, long*, int*>", grid, (128, 1, 1), 48, 8192, moved=source.bytes + call.out.bytes),
    ]  # fmt: skip


def _masks(call: Call) -> list[Work]:
    """A boolean index is turned into positions first, which waits for the GPU."""
    work: list[Work] = []
    for mask in call.inputs[1:]:
        if mask.dtype in ("bool", "uint8"):
            positions = Array((mask.numel, len(mask.shape)), "int64")
            work += _nonzero(Call("nonzero", (mask,), {}, (positions,), call.chip))
    return work


@models("index", "take", "_unsafe_index")
def _gather_rows(call: Call) -> list[Work]:
    out = call.out
    name = f"void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<at::native::index_kernel_impl<at::native::OpaqueType<{out.itemsize}> >(at::TensorIteratorBase&, c10::ArrayRef<long>, c10::ArrayRef<long>)::{{lambda(char*, char const*, long)#1}}> >"
    moved = 2 * out.bytes + sum(a.bytes for a in call.inputs[1:])
    kernel = Kernel(name, blocks(out.numel, 512), (128, 1, 1), 40, moved=moved, access="random")
    return [*_masks(call), *([kernel] if out.numel else [])]


@models("embedding", "index_select")
def _embedding(call: Call) -> list[Work]:
    out = call.out
    name = "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)"
    row = (out.shape[-1] if out.shape else 1) * out.itemsize
    grid = (max(1, out.numel * out.itemsize // max(1, row)), max(1, -(-row // 4096)), 1)
    moved = 2 * out.bytes + (call.inputs[1].bytes if len(call.inputs) > 1 else 0)
    return [Kernel(name, grid, (min(256, max(32, row // 16)), 1, 1), 32, moved=moved, access="random")]


@models("embedding_dense_backward")
def _embedding_backward(call: Call) -> list[Work]:
    grad, indices, out = call.inputs[0], call.inputs[-1], call.out
    t, a = names.ctype(grad.dtype), names.acctype(grad.dtype)
    zero = elementwise(call, names.functor("fill", out.dtype), out, 1, out.bytes, per_element=0)
    size = out.shape[-1]
    moved = 3 * grad.bytes + indices.bytes
    if indices.numel <= 3072:  # the limit in Embedding.cu for the kernel without a sort
        name = f"void {_AT}::embedding_backward_feature_kernel<{t}, {a}, long>(long const*, {t} const*, {t}*, int, long, int)"
        return [zero, Kernel(name, blocks(size, 32), (32, 32, 1), 40, 16384, moved=moved, access="random")]
    grid = blocks(indices.numel * size, 32 * 64)
    return [
        zero,
        *radix_sort(indices.numel, "int64", 16),
        Kernel(f"void {_AT}::compute_grad_weight<{t}, long>(long const*, {t} const*, long const*, long, long, {a}*, long const*, long const*)", grid, (32, 1, 1), 40, moved=moved, access="random"),
        Kernel(f"void {_AT}::sum_and_scatter<{t}, long>(long const*, {t}*, long, {a} const*, long const*, long const*, long const*, long, long)", grid, (32, 1, 1), 40, moved=moved, access="random"),
    ]  # fmt: skip


@models("index_put_", "index_put", "_index_put_impl_", "_unsafe_index_put")
def _index_put(call: Call) -> list[Work]:
    values = call.argument(2, "values")
    accumulate = bool(call.argument(3, "accumulate", False))
    indices = call.inputs[1:-1]
    work = _masks(call)
    moved = 2 * values.bytes + sum(a.bytes for a in indices)
    positions = max((a.numel for a in indices), default=1)
    if accumulate:
        t = names.ctype(values.dtype)
        name = f"void at::native::indexing_backward_kernel<{t}, 4>(long const*, long const*, {t} const*, {t}*, long, long, long, long, bool)"
        grid = blocks(positions, 4)
        return [
            *work,
            *radix_sort(positions, "int64", 16),
            Kernel(name, grid, (32, 4, 1), 40, moved=moved, access="random"),
        ]
    name = f"void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<at::native::index_put_kernel_impl<at::native::OpaqueType<{values.itemsize}> >(at::TensorIterator&, c10::ArrayRef<long>, c10::ArrayRef<long>)::{{lambda(char*, char const*, long)#1}}> >"
    return [
        *work,
        Kernel(name, blocks(max(values.numel, positions), 512), (128, 1, 1), 40, moved=moved, access="random"),
    ]


@models(
    """gather scatter_ scatter scatter_add_ scatter_add scatter_reduce scatter_reduce_ index_add_ index_add index_copy_
    index_copy index_fill_ index_fill"""
)
def _scatter(call: Call) -> list[Work]:
    index = next((a for a in call.inputs if a.dtype in ("int64", "int32")), call.out)
    item = call.out.itemsize
    name = f"void at::native::_scatter_gather_elementwise_kernel<128, 8, at::native::_cuda_scatter_gather_internal_kernel<{'false' if call.op == 'gather' else 'true'}, at::native::OpaqueType<{item}> >::operator()<at::native::TensorAssign>(at::TensorIterator&, long, long, long, at::native::TensorAssign const&)::{{lambda(int)#1}}>"
    work: list[Work] = []
    if not call.op.endswith("_") and call.op != "gather":
        work += [Copy("DtoD", call.out.bytes)]
    moved = index.bytes + 2 * index.numel * item
    return [*work, Kernel(name, blocks(index.numel, 1024), (128, 1, 1), 32, moved=moved, access="random")]


@models("cat", "stack", "hstack", "vstack")
def _cat(call: Call) -> list[Work]:
    out = call.out
    if not out.numel:
        return []
    aligned = "aligned16_contig" if all(a.contiguous for a in call.inputs) else "contig"
    rank = min(4, max(1, len(out.shape)))
    name = (
        f"void {_AT}::CatArrayBatchedCopy_{aligned}<{_AT}::OpaqueType<{out.itemsize}u>, unsigned int, {rank}, 128, 1>"
    )
    # 128 tensors fit a launch's arguments.
    batches = [call.inputs[i : i + 128] for i in range(0, len(call.inputs), 128)]
    return [
        Kernel(name, (min(2 * call.chip.sms, blocks(max(a.numel for a in batch), 512)[0]), len(batch), 1), (512, 1, 1), 40, moved=2 * sum(a.bytes for a in batch))
        for batch in batches
    ]  # fmt: skip


_DISTRIBUTIONS = {
    "randn": "normal", "randn_like": "normal", "normal_": "normal", "normal": "normal", "randint": "random_from_to",
    "random_": "random_from_to", "randint_like": "random_from_to", "bernoulli_": "bernoulli", "bernoulli": "bernoulli",
    "exponential_": "exponential",
}  # fmt: skip


@models(*_DISTRIBUTIONS, "rand", "rand_like", "uniform_", "log_normal_", "cauchy_", "geometric_")
def _random(call: Call) -> list[Work]:
    out = call.out
    if not out.numel:
        return []
    t, a = names.ctype(out.dtype), names.acctype(out.dtype)
    kind = _DISTRIBUTIONS.get(call.op, "uniform")
    inner = f"at::native::templates::cuda::{kind}_and_transform<{t}, {a}, at::CUDAGeneratorImpl*, at::native::templates::cuda::{kind}_kernel<at::CUDAGeneratorImpl*>(at::TensorIteratorBase&, double, double, at::CUDAGeneratorImpl*)::{{lambda({a})#1}}>"
    if kind.startswith("random"):
        inner = f"at::native::templates::cuda::{kind}_kernel<at::CUDAGeneratorImpl*>(at::TensorIteratorBase&, unsigned long, long, at::CUDAGeneratorImpl*)"
    name = f"void {_AT}::distribution_elementwise_grid_stride_kernel<{a}, 4, {inner} >"
    grid = (min(blocks(out.numel, 1024)[0], 8 * call.chip.sms), 1, 1)
    # A Philox number takes about 40 integer operations.
    return [Kernel(name, grid, (256, 1, 1), 64, operations=40 * out.numel, moved=out.bytes)]


@models("native_dropout")
def _dropout(call: Call) -> list[Work]:
    t = names.ctype(call.out.dtype)
    name = f"void {_AT}::fused_dropout_kernel_vec<{t}, {names.acctype(call.out.dtype)}, unsigned int, 1, 4, bool>"
    grid = (min(blocks(call.out.numel, 1024)[0], 8 * call.chip.sms), 1, 1)
    return [Kernel(name, grid, (256, 1, 1), 48, operations=40 * call.out.numel, moved=call.moved)]


@models("multinomial")
def _multinomial(call: Call) -> list[Work]:
    source = call.inputs[0]
    rows = max(1, math.prod(source.shape[:-1]))
    name = f"void at::native::sampleMultinomialOnce<{names.ctype(source.dtype)}, {names.acctype(source.dtype)}>"
    return [*_random(Call("exponential_", (source,), {}, (source,), call.chip)), Kernel(name, (rows, 1, 1), (128, 1, 1), 40, 512, moved=3 * source.bytes)]  # fmt: skip


@models("tril", "triu", "tril_", "triu_")
def _triangle(call: Call) -> list[Work]:
    t = names.ctype(call.out.dtype)
    name = f"void at::native::triu_tril_kernel<{t}, int, {'true' if call.op.startswith('triu') else 'false'}, 4, false>"
    return [Kernel(name, blocks(call.out.numel, 512), (128, 1, 1), 24, moved=2 * call.out.bytes)]
