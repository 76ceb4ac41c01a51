"""What a GPU runs for operators that live in libraries: products (cuBLAS), convolutions and recurrences (cuDNN), attention
(FlashAttention, CUTLASS), softmax, normalisation, pooling, losses.
"""

from __future__ import annotations

import math

from cuptiprof.sim import torch_names as names
from cuptiprof.sim.torch_kernels import elementwise, reduce
from cuptiprof.sim.torch_work import Array, Call, Kernel, Set, Work, blocks, models

_AT = "at::native::(anonymous namespace)"
_SHORT = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int8": "i8"}
_HALF = ("float16", "bfloat16")


def _transposed(a: Array) -> bool:
    """Column-major in its last two dimensions."""
    return a.strides is not None and a.strides[-2] == 1 and a.strides[-1] != 1


# Assumption: what a block of this tile reaches of its SM's peak; smaller tiles reuse less of what they load.
_TILES = {(128, 128): 1.0, (128, 64): 0.9, (64, 64): 0.8, (64, 32): 0.65, (32, 32): 0.5}
_SPLITS = (1, 2, 4, 8)


def choose_tile(sms: int, m: int, n: int, k: int, batch: int) -> tuple[tuple[int, int], int]:
    """Tile and number of pieces of the sum that keep the SMs busiest, as cuBLAS's heuristics try to."""

    def cost(choice: tuple[tuple[int, int], int]) -> float:
        (tile_m, tile_n), split = choice
        blocks = -(-m // tile_m) * -(-n // tile_n) * batch * split
        waves = -(-blocks // sms)
        # A split costs a second kernel over the partial sums, here as so many more steps of k.
        return waves * tile_m * tile_n * (-(-k // split) + (0 if split == 1 else 512)) / _TILES[tile_m, tile_n]

    choices = [(tile, split) for tile in _TILES for split in _SPLITS if split == 1 or k // split >= 256]
    return min(choices, key=cost)


def gemm(call: Call, dtype: str, m: int, n: int, k: int, batch: int = 1, layout: str = "tn") -> list[Work]:
    """A matrix product m x k by k x n, `batch` times, with its second kernel where the sum is split."""
    if not m * n * k * batch:
        return []
    chip = call.chip
    (tile_m, tile_n), split = choose_tile(chip.sms, m, n, k, batch)
    large = tile_m * tile_n >= 128 * 64
    small = _SHORT.get(dtype, "f32")
    tile = f"{tile_m}x{tile_n}"
    static = dynamic = 0
    cluster = (0, 0, 0)
    if not chip.tensor_peak(dtype, tf32=call.tf32):
        letter = {"float64": "d", "complex64": "c", "complex128": "z"}.get(dtype, "s")
        name = f"{'volta' if chip.architecture < 80 else 'ampere'}_{letter}gemm_{tile}_{layout}"
        threads, registers, static = (256 if large else 128), 122, (16896 if large else 8448)
    elif chip.architecture >= 90:
        kind, k_tile = ("tf32f32", 32) if small == "f32" else (f"{small}f32", 64)
        name = (
            f"sm{chip.architecture}_xmma_gemm_{small}{small}_{kind}_f32_{layout}_n_tilesize{tile}x{k_tile}_warpgroupsize1x1x1_"
            f"{'splitK_' if split > 1 else ''}execute_segment_k_off_kernel__5x_cublas"
        )
        threads, registers, dynamic, cluster = (384 if large else 128), 168, (200704 if large else 98304), (1, 1, 1)
    elif chip.architecture >= 80:
        inner = {"f32": "tf32_s1688", "f64": "f64_d884", "i8": "s8_i16832"}.get(small, f"{small}_s16816")
        name = f"ampere_{inner}gemm_{small}_{tile}_ldg8_f2f_stages_32x5_{layout}"
        threads, registers, dynamic = (256 if large else 128), 230, 81920
    else:
        name = f"volta_fp16_s884gemm_fp16_{tile}_ldg8_f2f_{layout}"
        threads, registers, static = 256, 128, 32768
    item = Array((), dtype).itemsize
    results = m * n * batch
    partial = 4 * results * split if split > 1 else item * results
    # cuBLAS is column-major: its rows are our columns.
    work: list[Work] = [
        Kernel(
            name,
            (-(-n // tile_n), -(-m // tile_m), batch * split),
            (threads, 1, 1),
            registers,
            static,
            dynamic,
            cluster,
            operations=2.0 * results * k,
            peak=chip.peak(dtype, tf32=call.tf32) * _TILES[tile_m, tile_n],
            efficiency="gemm",
            moved=item * (m * k + k * n) * batch + partial,
            whole_sm=True,
        )
    ]
    if split > 1:
        t = names.ctype(dtype)
        second = f"void cublasLt::splitKreduce_kernel<32, 16, int, float, {t}, float, {t}, true, false, false>(cublasLt::cublasSplitKParams<float>, float const*, {t} const*, {t}*, {t} const*, float const*, float const*, {t} const*, float const*, {t}*, void*, long, float*, int*)"
        work.append(Kernel(second, blocks(results, 512), (32, 16, 1), 32, moved=partial + item * results))
    return work


def _layout(a: Array, b: Array) -> str:
    """cuBLAS's letters for row-major a @ b: its first operand is b, its second a; "t" where that one is transposed to it."""
    return ("t" if _transposed(b) else "n") + ("t" if _transposed(a) else "n")


@models("mm", "addmm", "_addmm_activation", "_int_mm", "_scaled_mm")
def _mm(call: Call) -> list[Work]:
    a, b = call.inputs[1:3] if call.op in ("addmm", "_addmm_activation") else call.inputs[:2]
    return gemm(call, a.dtype, a.shape[0], b.shape[1], a.shape[1], layout=_layout(a, b))


@models("bmm", "baddbmm", "addbmm")
def _bmm(call: Call) -> list[Work]:
    a, b = call.inputs[1:3] if call.op != "bmm" else call.inputs[:2]
    return gemm(call, a.dtype, a.shape[1], b.shape[2], a.shape[2], a.shape[0], _layout(a, b))


@models("linear", "mkldnn_linear")
def _linear(call: Call) -> list[Work]:
    x, weight = call.inputs[:2]
    return gemm(call, x.dtype, x.numel // max(1, x.shape[-1]), weight.shape[0], weight.shape[1], layout="tn")


@models("mv", "addmv", "dot", "vdot")
def _mv(call: Call) -> list[Work]:
    a = call.inputs[1] if call.op == "addmv" else call.inputs[0]
    t = names.ctype(a.dtype)
    if call.op in ("dot", "vdot"):
        dot = f"void dot_kernel<{t}, 128, 0, cublasDotParams<cublasGemvTensor<{t} const>, cublasGemvTensorStridedBatched<{t}> > >"
        last = f"void reduce_1Block_kernel<{t}, 128, 7, cublasGemvTensorStridedBatched<{t}>, cublasGemvTensorStridedBatched<{t}> >"
        grid = (min(blocks(a.numel, 1024)[0], 2 * call.chip.sms), 1, 1)
        return [
            Kernel(dot, grid, (128, 1, 1), 40, 1024, moved=2 * a.bytes),
            Kernel(last, (1, 1, 1), (128, 1, 1), 24, 512),
        ]
    name = f"void gemv2T_kernel_val<int, int, {t}, {t}, {t}, {t}, 128, 16, 4, 4, false, false, cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<{t} const>, cublasGemvTensorStridedBatched<{t} const>, cublasGemvTensorStridedBatched<{t}>, {t}> >"
    return [Kernel(name, (max(1, a.shape[0]), 1, 1), (128, 1, 1), 60, 1280, operations=2 * a.numel, moved=call.moved)]


def _conv_name(call: Call, dtype: str, direction: str, groups: int) -> tuple[str, int]:
    small = _SHORT.get(dtype, "f32")
    tf32 = call.cudnn_tf32
    if groups > 1:
        return (
            f"void {_AT}::conv_depthwise2d_{'forward' if direction == 'fprop' else 'backward' if direction == 'dgrad' else 'grad_weight'}_kernel<3, {names.ctype(dtype)}, int>",
            0,
        )
    if not call.chip.tensor_peak(dtype, tf32=tf32):
        tail = {"fprop": "relu_interior_nn_v1", "dgrad": "interior_nn_v1", "wgrad": "interior_nt_v1"}[direction]
        return (
            f"{'volta' if call.chip.architecture < 80 else 'ampere'}_scudnn_128x64_{'stridedB_splitK_' if direction == 'wgrad' else ''}{tail}",
            0,
        )
    kind = f"tf32f32_tf32f32_{'f32'}" if small == "f32" else f"{small}{small}_{small}f32_f32"
    sm = "sm80" if call.chip.architecture >= 80 else "sm70"
    return (
        f"{sm}_xmma_{direction}_implicit_gemm_{kind}_nhwckrsc_nhwc_tilesize128x128x32_stage3_warpsize2x2x1_g1_tensor16x8x{8 if small == 'f32' else 16}_kernel_cudnn",
        98304,
    )


@models("convolution", "_convolution", "cudnn_convolution", "mkldnn_convolution", "convolution_overrideable")
def _convolution(call: Call) -> list[Work]:
    x, weight = call.inputs[:2]
    out = call.out
    transposed = bool(call.argument(6, "transposed", False))
    groups = int(call.argument(8, "groups", 1) or 1)
    per_output = math.prod(weight.shape[1:])
    operations = 2.0 * (x if transposed else out).numel * per_output
    work = [
        *_to_channels_last(call, x),
        _conv_kernel(call, "dgrad" if transposed else "fprop", x, weight, out, operations, groups),
        *_to_channels_first(call, out),
    ]
    if len(call.inputs) > 2 and call.inputs[2].shape:
        functor = names.functor("add", out.dtype, tensors=2)
        work.append(elementwise(call, functor, out, 3, 2 * out.bytes))
    return work


@models("convolution_backward", "cudnn_convolution_backward", "convolution_backward_overrideable")
def _convolution_backward(call: Call) -> list[Work]:
    grad, x, weight = call.inputs[:3]
    groups = int(call.argument(9, "groups", 1) or 1)
    transposed = bool(call.argument(7, "transposed", False))
    mask = call.argument(10, "output_mask", (True, True, True))
    operations = 2.0 * (x if transposed else grad).numel * math.prod(weight.shape[1:])
    work: list[Work] = [*_to_channels_last(call, grad)]
    if mask[0]:
        work += [_conv_kernel(call, "dgrad", grad, weight, x, operations, groups), *_to_channels_first(call, x)]
    if mask[1]:
        work += [*_to_channels_last(call, x), _conv_kernel(call, "wgrad", grad, x, weight, operations, groups)]
    if mask[2]:
        work += reduce("sum", grad, Array((grad.shape[1],), grad.dtype))
    return work


def _conv_kernel(call: Call, direction: str, a: Array, b: Array, out: Array, operations: float, groups: int) -> Kernel:
    name, shared = _conv_name(call, a.dtype, direction, groups)
    # Rows of the implicit product: output pixels (of wgrad: output channels), columns: channels (wgrad: inputs of a filter).
    channels = out.shape[1] if direction != "wgrad" else math.prod(out.shape[1:])
    rows = out.numel // max(1, channels)
    grid = (-(-rows // 128) * -(-channels // 128), 1, 1)
    if direction == "wgrad":  # a sum over all pixels: split over the SMs
        grid = (grid[0], 1, max(1, min(16, call.chip.sms // grid[0])))
    peak = call.chip.peak(a.dtype, tf32=call.cudnn_tf32) if groups == 1 else call.chip.vector_peak(a.dtype)
    return Kernel(
        name, grid, (128, 1, 1), 230, 0, shared, operations=operations, peak=peak, efficiency="conv",
        moved=a.bytes + b.bytes + out.bytes, whole_sm=groups == 1,
    )  # fmt: skip


def _changes_layout(call: Call, a: Array) -> bool:
    return (
        len(a.shape) == 4
        and a.contiguous
        and a.shape[1] > 1
        and call.chip.tensor_peak(a.dtype, tf32=call.cudnn_tf32) > 0
    )


def _to_channels_last(call: Call, a: Array) -> list[Work]:
    """cuDNN's tensor-core kernels want channels last."""
    return _relayout("nchwToNhwc", a) if _changes_layout(call, a) else []


def _to_channels_first(call: Call, a: Array) -> list[Work]:
    return _relayout("nhwcToNchw", a) if _changes_layout(call, a) else []


def _relayout(kind: str, a: Array) -> list[Work]:
    t = {"float16": "__half", "bfloat16": "__nv_bfloat16"}.get(a.dtype, "float")
    name = f"void cudnn::ops::{kind}Kernel<{t}, {t}, float, false, true, (cudnnKernelDataType_t)2>(cudnn::ops::nhwc2nchw_params_t<float>, {t} const*, {t}*)"
    return [Kernel(name, blocks(a.numel, 1024), (256, 1, 1), 40, 4224, moved=2 * a.bytes)]


@models(
    """_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_efficient_attention
    _scaled_dot_product_cudnn_attention _flash_attention_forward _efficient_attention_forward
    _scaled_dot_product_fused_attention_overrideable"""
)
def _attention(call: Call) -> list[Work]:
    q, k = call.inputs[:2]
    batch, heads, length, size = q.shape
    causal = bool(call.argument(4, "is_causal", False))
    # Two products; a causal mask leaves about half.
    operations = 4.0 * batch * heads * length * k.shape[-2] * size * (0.5 if causal else 1)
    moved = sum(a.bytes for a in call.inputs[:3]) + q.bytes
    peak = call.chip.peak(q.dtype, tf32=call.tf32)
    if q.dtype in _HALF and call.chip.architecture >= 80:
        d = 64 if size <= 64 else 128
        t = "cutlass::half_t" if q.dtype == "float16" else "cutlass::bfloat16_t"
        traits = f"Flash_fwd_kernel_traits<{d}, 128, {128 if d == 64 else 64}, 4, false, false, {t}, Flash_kernel_traits<{d}, 128, {128 if d == 64 else 64}, 4, {t}> >"
        name = f"void pytorch_flash::flash_fwd_kernel<{traits}, false, {str(causal).lower()}, false, false, true, true, false, false>(pytorch_flash::Flash_fwd_params)"
        grid, block, shared = (-(-length // 128), batch, heads), (128, 1, 1), 49152 if d == 64 else 65536
    else:
        t = names.ctype(q.dtype).replace("c10::Half", "f16")
        t = "f32" if q.dtype == "float32" else "f16"
        name = f"fmha_cutlassF_{t}_aligned_64x{64 if size <= 64 else 128}_rf_sm{min(80, call.chip.architecture)}(PyTorchMemEffAttention::AttentionKernel<{names.ctype(q.dtype)}, cutlass::arch::Sm{min(80, call.chip.architecture)}, true, 64, 64, 64, true, true>::Params)"
        grid, block, shared = (-(-length // 64), heads, batch), (32, 4, 1), 32768
    return [
        Kernel(
            name, grid, block, 255, 0, shared, operations=operations, peak=peak, efficiency="attention", moved=moved, whole_sm=True
        )
    ]  # fmt: skip


@models(
    """_scaled_dot_product_flash_attention_backward _scaled_dot_product_flash_attention_for_cpu_backward
    _scaled_dot_product_efficient_attention_backward _scaled_dot_product_cudnn_attention_backward
    _flash_attention_backward _efficient_attention_backward"""
)
def _attention_backward(call: Call) -> list[Work]:
    grad, q, k = call.inputs[:3]
    batch, heads, length, size = q.shape
    causal = bool(call.argument(7, "is_causal", False))
    # Five products.
    operations = 10.0 * batch * heads * length * k.shape[-2] * size * (0.5 if causal else 1)
    moved = 5 * q.bytes + 4 * k.bytes
    peak = call.chip.peak(q.dtype, tf32=call.tf32)
    if q.dtype in _HALF and call.chip.architecture >= 80:
        d = 64 if size <= 64 else 128
        t = "cutlass::half_t" if q.dtype == "float16" else "cutlass::bfloat16_t"
        traits = f"Flash_bwd_kernel_traits<{d}, 64, 128, 8, 2, 4, 4, false, false, {t}, Flash_kernel_traits<{d}, 64, 128, 8, {t}> >"
        params = "(pytorch_flash::Flash_bwd_params)"
        c = str(causal).lower()
        return [
            Kernel(f"void pytorch_flash::flash_bwd_dot_do_o_kernel<true, {traits}>{params}", (-(-length // 64), batch, heads), (256, 1, 1), 64, moved=2 * q.bytes),
            Kernel(f"void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<{traits}, false, {c}, false, false, true, true, false>{params}", (-(-k.shape[-2] // 128), batch, heads), (256, 1, 1), 255, 0, 147456, operations=operations, peak=peak, efficiency="attention", moved=moved, whole_sm=True),
            Kernel(f"void pytorch_flash::flash_bwd_convert_dq_kernel<{traits}>{params}", (-(-length // 64), batch, heads), (256, 1, 1), 64, 0, 16384, moved=3 * q.bytes),
        ]  # fmt: skip
    sm = min(80, call.chip.architecture)
    t = "f32" if q.dtype == "float32" else "f16"
    name = f"fmha_cutlassB_{t}_aligned_64x64_k64_sm{sm}(PyTorchMemEffAttention::AttentionBackwardKernel<cutlass::arch::Sm{sm}, {names.ctype(q.dtype)}, true, false, false, 64, 64, 64, false>::Params)"
    delta = elementwise(call, names.functor("mul", grad.dtype, tensors=2), grad, 3, 2 * grad.bytes)
    return [
        delta,
        *reduce("sum", grad, Array(grad.shape[:-1], "float32")),
        Kernel(name, (-(-k.shape[-2] // 64), heads, batch), (32, 4, 1), 255, 0, 65536, operations=operations, peak=peak, efficiency="attention", moved=moved, whole_sm=True),
    ]  # fmt: skip


@models(
    "_softmax",
    "_log_softmax",
    "_safe_softmax",
    "_softmax_backward_data",
    "_log_softmax_backward_data",
    "softmax",
    "log_softmax",
)
def _softmax(call: Call) -> list[Work]:
    x = call.inputs[0]
    if not x.numel:
        return []
    dim = call.argument(2 if "backward" in call.op else 1, "dim", -1)
    size = x.shape[dim if isinstance(dim, int) and x.shape else -1] if x.shape else 1
    rows = x.numel // size
    t, a = names.ctype(x.dtype), names.acctype(x.dtype)
    log, backward = "log" in call.op, "backward" in call.op
    moved = call.moved if not backward else 2 * x.bytes + call.out.bytes
    if size <= 1024:
        log2 = max(0, math.ceil(math.log2(size)))
        kind = f"softmax_warp_{'backward' if backward else 'forward'}<{t}, {t}, {a}, {log2}, {str(log).lower()}, false>"
        parameters = f"({t}*, {t} const*, {t + ' const*, ' if backward else ''}int, int, int, bool const*)"
        per_block = 4 * (2 if size <= 128 else 1)
        return [Kernel(f"void (anonymous namespace)::{kind}{parameters}", blocks(rows, per_block), (min(32, 1 << log2), 4, 1), 40, operations=5 * x.numel, moved=moved)]  # fmt: skip
    epilogue = f"{_AT}::{'Log' if log else ''}SoftMax{'Backward' if backward else 'Forward'}Epilogue"
    name = f"void {_AT}::cunn_SoftMax{'BackwardSmem' if backward else 'ForwardSmem'}<4, {t}, {a}, {t}, {epilogue}, long>({t}*, {t} const*, long)"
    return [
        Kernel(
            name,
            (rows, 1, 1),
            (1024, 1, 1),
            32,
            128,
            min(49152, size * x.itemsize),
            operations=5 * x.numel,
            moved=moved,
        )
    ]


def _rows(x: Array, weight_like: int) -> tuple[int, int]:
    size = max(1, weight_like)
    return max(1, x.numel // size), size


@models("native_layer_norm", "_fused_rms_norm", "rms_norm")
def _layer_norm(call: Call) -> list[Work]:
    x = call.inputs[0]
    rows, _ = _rows(x, math.prod(call.argument(1, "normalized_shape", x.shape[-1:])))
    t, a = names.ctype(x.dtype), names.acctype(x.dtype)
    kind = "rms_norm" if "rms" in call.op else "layer_norm"
    name = f"void {_AT}::vectorized_{kind}_kernel<{t}, {a}, false>(int, {a}, {t} const*, {t} const*, {t} const*, {a}*, {a}*, {t}*)"
    return [Kernel(name, (rows, 1, 1), (32, 4, 1), 32, 0, 24, operations=8 * x.numel, moved=call.moved)]


@models("native_layer_norm_backward", "_fused_rms_norm_backward")
def _layer_norm_backward(call: Call) -> list[Work]:
    x = call.inputs[1]
    rows, size = _rows(x, math.prod(call.argument(2, "normalized_shape", x.shape[-1:])))
    t, a = names.ctype(x.dtype), names.acctype(x.dtype)
    return [
        Kernel(f"void {_AT}::layer_norm_grad_input_kernel_vectorized<{t}, {a}, false>({t} const*, {t} const*, {a} const*, {a} const*, {t} const*, {t}*, int)", (rows, 1, 1), (128, 1, 1), 40, 0, 16, operations=10 * x.numel, moved=3 * x.bytes),
        Kernel(f"void {_AT}::GammaBetaBackwardCUDAKernelTemplate<{t}, {a}, 32u, 32u, 256u, true, true, false>(long, long, {t} const*, {t} const*, {a} const*, {a} const*, {t}*, {t}*)", (-(-size // 32), 1, 1), (32, 32, 1), 48, 8448, operations=4 * x.numel, moved=2 * x.bytes, access="reduce"),
    ]  # fmt: skip


@models("native_group_norm")
def _group_norm(call: Call) -> list[Work]:
    x = call.inputs[0]
    groups = int(call.argument(6, "group", 1))
    t, a = names.ctype(x.dtype), names.acctype(x.dtype)
    return [
        Kernel(f"void {_AT}::RowwiseMomentsCUDAKernel<{t}>(long, {a}, {t} const*, {t}*, {t}*)", (max(1, x.shape[0] * groups), 1, 1), (512, 1, 1), 32, 64, operations=3 * x.numel, moved=x.bytes, access="reduce"),
        elementwise(call, names.functor("native_group_norm", x.dtype, tensors=3), x, 4, 2 * x.bytes),
    ]  # fmt: skip


@models("native_group_norm_backward")
def _group_norm_backward(call: Call) -> list[Work]:
    x = call.inputs[1]
    t = names.ctype(x.dtype)
    rows = max(1, x.shape[0] * x.shape[1])
    return [
        Kernel(f"void {_AT}::ComputeInternalGradientsCUDAKernel<{t}>(long, {t} const*, {t} const*, {names.acctype(x.dtype)}*, {names.acctype(x.dtype)}*)", (rows, 1, 1), (512, 1, 1), 32, 128, moved=2 * x.bytes, access="reduce"),
        elementwise(call, names.functor("native_group_norm_backward", x.dtype, tensors=3), x, 4, 3 * x.bytes),
        Kernel(f"void {_AT}::GammaBetaBackwardCUDAKernel1<{t}>", (-(-x.shape[1] // 32), 1, 1), (32, 32, 1), 32, 4224, moved=8 * rows),
    ]  # fmt: skip


@models(
    """native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training cudnn_batch_norm
    _batch_norm_with_update _batch_norm_no_update batch_norm"""
)
def _batch_norm(call: Call) -> list[Work]:
    x = call.inputs[0]
    training = bool(call.argument(5, "training", True)) and not call.op.endswith(("no_training", "no_update"))
    t = {"float16": "__half2", "bfloat16": "__nv_bfloat162"}.get(x.dtype, "float")
    if training:
        name = f"void cudnn::bn_fw_tr_1C11_singleread<{t}, 512, true, 1, 2, 0>(cudnn::bn_fw_tr_1C11_args<{t}, float>)"
        moved = 3 * x.bytes  # statistics, then the result
    else:
        name = f"void cudnn::bn_fw_inf_1C11_kernel_NCHW<{t}, float, true, 1>(float, float, cudnnTensorStruct, {t} const*, cudnnTensorStruct, {t}*, cudnnTensorStruct, float const*, float const*, float const*, float const*, float)"
        moved = 2 * x.bytes
    channels = x.shape[1] if len(x.shape) > 1 else 1
    grid = (channels, 1, 1) if training else blocks(x.numel, 2048)
    return [
        Kernel(
            name, grid, (512, 1, 1), 40, 8192 if training else 0, operations=8 * x.numel, moved=moved, access="reduce"
        )
    ]


@models("native_batch_norm_backward", "cudnn_batch_norm_backward", "batch_norm_backward")
def _batch_norm_backward(call: Call) -> list[Work]:
    x = call.inputs[1]
    t = {"float16": "__half2", "bfloat16": "__nv_bfloat162"}.get(x.dtype, "float")
    name = f"void cudnn::bn_bw_1C11_singleread<{t}, 512, true, 1, 2, 0>(float, float, float, float, cudnnTensorStruct, {t} const*, cudnnTensorStruct, {t} const*, cudnnTensorStruct, {t}*, float const*, float*, float*, float const*, float const*, float)"
    return [
        Kernel(
            name,
            (x.shape[1] if len(x.shape) > 1 else 1, 1, 1),
            (512, 1, 1),
            40,
            8192,
            operations=12 * x.numel,
            moved=5 * x.bytes,
            access="reduce",
        )
    ]


@models("nll_loss_forward", "nll_loss_backward", "nll_loss2d_forward", "nll_loss2d_backward")
def _nll(call: Call) -> list[Work]:
    x = call.inputs[1] if "backward" in call.op else call.inputs[0]
    t, a = names.ctype(x.dtype), names.acctype(x.dtype)
    backward = "backward" in call.op
    rows = x.numel // max(1, x.shape[1] if len(x.shape) > 1 else x.numel)
    kind = "backward_reduce" if backward else "forward_reduce"
    name = f"void {_AT}::nll_loss_{kind}_cuda_kernel_2d<{t}, {t + ', ' if backward else a + ', '}long>({t}*, {t}*, {t} const*, long const*, {t} const*, bool, long, long, long, long)"
    kernel = Kernel(
        name,
        (1, 1, 1),
        (32, 1, 1) if rows < 1024 else (1024, 1, 1),
        24,
        256,
        moved=rows * (8 + 2 * x.itemsize),
        access="random",
    )
    if backward:
        return [elementwise(call, names.functor("fill", x.dtype), x, 1, x.bytes, per_element=0), kernel]
    return [kernel]


@models("mse_loss", "binary_cross_entropy", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "kl_div")
def _loss(call: Call) -> list[Work]:
    x = call.inputs[0]
    work: list[Work] = [elementwise(call, names.functor(call.op, x.dtype, tensors=2), x, 3, 3 * x.bytes)]
    if call.out.numel != x.numel:
        work += reduce("mean", x, call.out)
    return work


@models(
    "max_pool2d_with_indices",
    "max_pool2d_with_indices_backward",
    "max_pool3d_with_indices",
    "max_pool3d_with_indices_backward",
)
def _max_pool(call: Call) -> list[Work]:
    t = names.ctype(call.out.dtype)
    direction = "backward" if "backward" in call.op else "forward"
    dims = 2 if "2d" in call.op else 3
    name = f"void {_AT}::max_pool{'3d' if dims == 3 else ''}_{direction}_nchw<{t}{', ' + names.acctype(call.out.dtype) if direction == 'backward' else ''}, int>(int, {t} const*, long, long, long, int, int, int, int, int, int, int, int, int, int, {t}*, long*)"
    return [Kernel(name, blocks(call.out.numel, 256), (256, 1, 1), 40, operations=9 * call.out.numel, moved=call.moved)]


@models(
    """avg_pool2d avg_pool2d_backward avg_pool3d avg_pool3d_backward _adaptive_avg_pool2d _adaptive_avg_pool2d_backward
    _adaptive_avg_pool3d _adaptive_avg_pool3d_backward adaptive_max_pool2d adaptive_max_pool2d_backward
    upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d
    upsample_nearest2d_backward upsample_bilinear2d_backward grid_sampler_2d grid_sampler_2d_backward im2col col2im
    constant_pad_nd reflection_pad1d reflection_pad2d replication_pad2d glu glu_backward flip roll repeat_interleave
    select_backward slice_backward diagonal_backward unfold_backward _weight_norm_interface _weight_norm_interface_backward
    mse_loss_backward smooth_l1_loss_backward huber_loss_backward binary_cross_entropy_backward
    binary_cross_entropy_with_logits histc bincount searchsorted bucketize cdist _cdist_forward _cdist_backward _pdist_forward
    trace diag_embed renorm _fake_quantize_learnable_per_tensor_affine index_reduce_ repeat masked_select unfold"""
)
def _frame(call: Call) -> list[Work]:
    """Kernels that go over their tensors once, one thread an output."""
    if not call.out.numel:
        return []
    t = names.ctype(call.out.dtype)
    name = f"void {_AT}::{call.op.lstrip('_')}_out_frame<{t}, {names.acctype(call.out.dtype)}>"
    return [
        Kernel(name, blocks(call.out.numel, 256), (256, 1, 1), 32, operations=4 * call.main.numel, moved=call.moved)
    ]


@models("mkldnn_rnn_layer", "mkldnn_rnn_layer_backward")
def _lstm_layer(call: Call) -> list[Work]:
    """cuDNN's standard algorithm for one LSTM layer in one direction: one product over all steps, then one a step.

    mkldnn_rnn_layer(input, weight_ih, weight_hh, bias_ih, bias_hh, hx, cx, ...), input (time, batch, features).
    """
    x, weight_ih, weight_hh = call.inputs[:3]
    if len(x.shape) != 3 or len(weight_ih.shape) != 2 or len(weight_hh.shape) != 2:
        return [elementwise(call, names.functor(call.op, x.dtype), call.main, 2, call.moved)]
    time, batch, features = x.shape
    gates, hidden = weight_hh.shape
    backward = call.op.endswith("backward")
    t = names.ctype(x.dtype)
    cell_name = f"void LSTM_elementWise_{'bp1' if backward else 'fp'}<{t}, {t}, {names.acctype(x.dtype)}, (cudnnRNNBiasMode_t)2>(int, int, int, int, {t} const*, {t} const*, {t}*)"
    cell = Kernel(
        cell_name,
        blocks(batch * hidden, 256),
        (256, 1, 1),
        40,
        operations=30 * batch * hidden,
        moved=x.itemsize * batch * (gates + 3 * hidden),
    )
    work: list[Work] = []
    if not backward:
        work += gemm(call, x.dtype, time * batch, gates, features, layout="tn")
        step = [*gemm(call, x.dtype, batch, gates, hidden, layout="tn"), cell]
        return work + step * time
    work += [
        Set(x.itemsize * gates * (features + hidden)),
        *([cell, *gemm(call, x.dtype, batch, hidden, gates, layout="nn")] * time),
    ]
    work += gemm(call, x.dtype, time * batch, features, gates, layout="nn")
    work += gemm(call, x.dtype, gates, features, time * batch, layout="nt")
    return work + gemm(call, x.dtype, gates, hidden, time * batch, layout="nt")
