"""Which kernels a GPU would run for an aten operator: families by operator name.

Kernel names follow those that torch's own profiler shows for eager PyTorch; shapes (grid, block, shared memory) are what such
kernels typically use. Plausible, not exact.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from cuptiprof.sim.roofline import Roofline

NOTHING = frozenset(
    [
        "empty",
        "empty_like",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
        "detach",
        "detach_",
        "alias",
        "set_",
        "resize_",
        "resize_as_",
        "lift",
        "lift_fresh",
        "size",
        "stride",
        "sym_size",
        "sym_stride",
        "sym_numel",
        "is_same_size",
        "is_pinned",
        "_nested_tensor_from_mask",
        "_assert_async",
        "record_stream",
        "_has_compatible_shallow_copy_type",
        "_unsafe_view",
        "_reshape_alias",
        "is_nonzero",
        "result_type",
    ]
)
"""Operators that only touch metadata."""

HOST_READS = frozenset(("_local_scalar_dense", "item", "equal"))
"""Operators that copy a value to the host and wait for it."""

GEMMS = frozenset(["mm", "addmm", "bmm", "baddbmm", "linear", "addbmm", "mv", "addmv", "dot", "_addmm_activation"])
CONVOLUTIONS = frozenset(
    [
        "convolution",
        "convolution_backward",
        "mkldnn_convolution",
        "_convolution",
        "cudnn_convolution",
        "thnn_conv2d",
        "_slow_conv2d_forward",
    ]
)
REDUCTIONS = frozenset(
    [
        "sum",
        "mean",
        "amax",
        "amin",
        "max",
        "min",
        "argmax",
        "argmin",
        "any",
        "all",
        "norm",
        "linalg_vector_norm",
        "var",
        "std",
        "var_mean",
        "prod",
        "logsumexp",
        "nansum",
        "count_nonzero",
        "cumsum",
        "cumprod",
        "aminmax",
    ]
)
FILLS = frozenset(
    [
        "zeros",
        "ones",
        "full",
        "zero_",
        "fill_",
        "zeros_like",
        "ones_like",
        "full_like",
        "arange",
        "linspace",
        "eye",
        "scalar_tensor",
        "new_zeros",
    ]
)
RANDOM = frozenset(
    [
        "rand",
        "randn",
        "randint",
        "rand_like",
        "randn_like",
        "normal_",
        "uniform_",
        "bernoulli_",
        "native_dropout",
        "dropout",
        "randperm",
        "random_",
        "exponential_",
    ]
)
COPIES = frozenset(["clone", "copy_", "_to_copy", "contiguous", "_copy_from"])


@dataclass(frozen=True)
class Kernel:
    """One simulated launch; `passes` is how often it goes over its bytes."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int] = (128, 1, 1)
    registers: int = 32
    shared_memory: int = 0
    tensor_cores: bool = False
    passes: float = 1.0


def _elementwise(functor: str, numel: int) -> Kernel:
    name = f"void at::native::vectorized_elementwise_kernel<4, at::native::{functor}, std::array<char*, 3ul> >(int, at::native::{functor}, std::array<char*, 3ul>)"
    return Kernel(name, (max(1, math.ceil(numel / 512)), 1, 1))


def _camel(op: str) -> str:
    return "".join(w.capitalize() for w in re.split(r"_+", op) if w)


def gemm(chip: Roofline, dtype: str, m: int, n: int, batch: int = 1) -> Kernel:
    """A matrix product of m x n results."""
    kind = {"float64": "f64f64", "float32": "f32f32", "float16": "f16f16", "bfloat16": "bf16bf16"}.get(dtype, "f32f32")
    half = dtype in ("float16", "bfloat16")
    large = m >= 128 and n >= 128
    tile_m, tile_n = (128, 128) if large else (64, 64)
    if chip.gemm_prefix.startswith("sm"):
        name = f"{chip.gemm_prefix}gemm_{kind}_{kind}_f32_tn_n_tilesize{tile_m}x{tile_n}x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"
        shape = ((384, 1, 1), 168, 196608 if large else 98304)
    else:
        name = (
            f"{chip.gemm_prefix}gemm_{tile_m}x{tile_n}_tn"
            if not half
            else f"{chip.gemm_prefix[:-1]}fp16_s16816gemm_fp16_{tile_m}x{tile_n}_ldg8_f2f_stages_32x5_tn"
        )
        shape = ((256, 1, 1), 122, 81920 if half else 16384)
    grid = (max(1, math.ceil(m / tile_m)), max(1, math.ceil(n / tile_n)), max(1, batch))
    return Kernel(name, grid, shape[0], shape[1], shape[2], tensor_cores=half)


def kernels_of(op: str, chip: Roofline, dtype: str, numel: int, rows: int, shape: tuple[int, ...]) -> list[Kernel]:
    """Kernels for the operator `op` (no overload, no namespace) with an output of `numel` elements in `rows` rows."""
    blocks = max(1, math.ceil(numel / 512))
    if op in NOTHING:
        return []
    if op in GEMMS:
        m = shape[-2] if len(shape) > 1 else 1
        n = shape[-1] if shape else 1
        return [gemm(chip, dtype, m, n, math.prod(shape[:-2]) if len(shape) > 2 else 1)]
    if op in CONVOLUTIONS:
        half = dtype in ("float16", "bfloat16")
        name = f"{chip.gemm_prefix}fprop_implicit_gemm_{'bf16' if half else 'f32'}_nhwckrsc_nhwc_tilesize128x128x32_stage3_kernel"
        if "backward" in op:
            return [
                Kernel(name.replace("fprop", "dgrad"), (blocks, 1, 1), (256, 1, 1), 168, 98304, half),
                Kernel(name.replace("fprop", "wgrad"), (blocks, 1, 1), (256, 1, 1), 168, 98304, half),
            ]
        return [Kernel(name, (blocks, 1, 1), (256, 1, 1), 168, 98304, half)]
    if "attention" in op:
        direction = "bwd" if "backward" in op else "fwd"
        name = f"void pytorch_flash::flash_{direction}_kernel<pytorch_flash::Flash_{direction}_kernel_traits<64, 128, 64, 4> >(pytorch_flash::Flash_{direction}_params)"
        return [Kernel(name, (max(1, rows // 128), 1, 1), (128, 1, 1), 255, 98304, True)]
    if op.startswith(("_foreach", "_fused_")):
        functor = _camel(op.replace("_foreach_", "").rstrip("_")) + "Functor"
        name = f"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::{functor}<float, 2, 1, 0> >"
        return [Kernel(name, (max(1, math.ceil(numel / 65536)), 1, 1), (512, 1, 1), 40)]
    if "softmax" in op:
        kind = "Backward" if "backward" in op else "Forward"
        log = "Log" if "log" in op else ""
        name = f"void (anonymous namespace)::softmax_warp_{kind.lower()}<float, float, float, 10, {'true' if log else 'false'}, false>(float*, float const*, int, int, int, bool const*, int, bool)"
        return [Kernel(name, (max(1, rows // 4), 1, 1), (128, 1, 1), 40)]
    if "layer_norm" in op:
        if "backward" in op:
            return [
                Kernel("void at::native::(anonymous namespace)::layer_norm_grad_input_kernel_vectorized<float, float>(float const*, float const*, float const*, float const*, float const*, float*, int)", (max(1, rows), 1, 1), (128, 1, 1), 40),
                Kernel("void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<float, float, 32u, 1u, 32u, true, true>(long, long, float const*, float const*, float const*, float const*, float*, float*)", (max(1, numel // max(1, rows) // 32), 1, 1), (32, 32, 1), 48, 4224),
            ]  # fmt: skip
        return [Kernel("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float, float const*, float const*, float const*, float*, float*, float*)", (max(1, rows), 1, 1), (32, 4, 1), 32, 24)]  # fmt: skip
    if "batch_norm" in op:
        direction = "bw" if "backward" in op else "fw_tr"
        return [Kernel(f"void cudnn::bn_{direction}_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>", (max(1, rows), 1, 1), (512, 1, 1), 40)]  # fmt: skip
    if op == "embedding":
        return [Kernel("void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int, 2, 2, -2, true>", (blocks, 1, 1))]  # fmt: skip
    if op == "embedding_dense_backward":
        return [Kernel("void at::native::(anonymous namespace)::embedding_backward_feature_kernel<float, float, long>", (max(1, rows // 32), 1, 1), (32, 32, 1))]  # fmt: skip
    if op.startswith(("index", "gather", "scatter", "take", "masked_")):
        return [Kernel(f"void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<at::native::{_camel(op)}Kernel> >", (blocks, 1, 1))]  # fmt: skip
    if op in REDUCTIONS or op.startswith(("nll_loss", "_log_softmax_backward")):
        return [Kernel(f"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::{_camel(op)}Ops<float, float, float, float>, unsigned int, float, 4, 4> >", (max(1, rows // 16), 1, 1), (32, 16, 1), 32, 16)]  # fmt: skip
    if op in RANDOM:
        return [Kernel(f"void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4, at::native::templates::cuda::{_camel(op)} >", (min(blocks, chip.sms * 8), 1, 1), (256, 1, 1), 64)]  # fmt: skip
    if op in FILLS:
        return [_elementwise("FillFunctor<float>", numel)]
    if op in COPIES:
        return [_elementwise("copy_device_to_device", numel)]
    if op == "cat" or op == "stack":
        return [Kernel("void at::native::(anonymous namespace)::CatArrayBatchedCopy_aligned16_contig<at::native::(anonymous namespace)::OpaqueType<4u>, unsigned int, 1, 64, 64>", (blocks, 1, 1))]  # fmt: skip
    return [_elementwise(f"CUDAFunctor_{op.rstrip('_')}<float>", numel)]
