"""What the libraries run: matrix products (cuBLAS), convolutions and recurrences (cuDNN), attention (FlashAttention, CUTLASS)."""

from __future__ import annotations

import math
from collections.abc import Callable

from cuptiprof.sim.pytorch.calls import Array, Call
from cuptiprof.sim.pytorch.launches import KernelWork, Work, grid, kernel_name
from cuptiprof.sim.roofline import fill

_TYPES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int8": "i8"}
# Assumption: what a block of a square tile reaches of its SM's peak; smaller tiles reuse less of what they load.
_TILES = {128: 1.0, 64: 0.8, 32: 0.5}


def _name(call: Call, dtype: str, kind: str, tile: str, *, tf32: bool) -> str:
    """As cuBLAS and cuDNN spell theirs: on tensor cores the types, without them the letter of BLAS (s, d, c, z)."""
    architecture = call.chip.architecture
    if not call.chip.tensor_peak(dtype, tf32=tf32):
        letter = {"float64": "d", "complex64": "c", "complex128": "z"}.get(dtype, "s")
        return f"{'volta' if architecture < 80 else 'ampere'}_{letter}{kind}_{tile}"
    t = _TYPES.get(dtype, "f8")
    return f"sm{architecture}_xmma_{kind}_{t}{t}_{'tf32' if t == 'f32' else t}f32_f32_{tile}"


def gemm(call: Call, dtype: str, m: int, n: int, k: int, batch: int = 1, layout: str = "tn") -> list[Work]:
    """A matrix product m x k by k x n, `batch` times: in the tiles, and with its sums split, as keeps the chip busiest."""
    if not m * n * k * batch:
        return []
    # cuBLAS is column-major: its rows are our columns.
    grids = {side: (-(-n // side), -(-m // side)) for side in _TILES}
    splits = {side: max(1, min(call.chip.sms // (x * y * batch), k // 256)) for side, (x, y) in grids.items()}
    tile = max(_TILES, key=lambda t: _TILES[t] * fill(math.prod(grids[t]) * batch * splits[t], call.chip.sms))
    (x, y), split = grids[tile], splits[tile]
    item, results = Array((), dtype).itemsize, m * n * batch
    tail = f"{tile}x{tile}_{layout}" + "_splitK" * (split > 1)
    moved = item * ((m * k + k * n) * batch + results) + (8 * results * split if split > 1 else 0)
    peak = call.chip.peak(dtype, tf32=call.tf32) * _TILES[tile]
    kernel = KernelWork(
        _name(call, dtype, "gemm", tail, tf32=call.tf32), (x, y, batch * split), (256 if tile > 32 else 128, 1, 1), 168,
        item * 64 * 2 * tile, 2.0 * results * k, peak=peak, efficiency="gemm", moved=moved, whole_sm=True,
    )  # fmt: skip
    return [kernel]


def _matmul(call: Call) -> list[Work]:
    """mm and bmm, and with a bias before the factors addmm and its like."""
    a, b = call.inputs[1:3] if "add" in call.op else call.inputs[:2]
    transposed = ["t" if x.strides and x.strides[-2] == 1 and x.strides[-1] != 1 else "n" for x in (b, a)]
    batch = a.shape[0] if len(a.shape) > 2 else 1
    return gemm(call, a.dtype, a.shape[-2], b.shape[-1], a.shape[-1], batch, "".join(transposed))


def _convolution(call: Call) -> list[Work]:
    """An implicit product for each direction; tensor cores want channels last, so whatever is not is changed to that and back."""
    backward = "backward" in call.op
    out, x, weight = call.inputs[:3] if backward else (call.out, *call.inputs[:2])
    groups = call.argument(9 if backward else 8, "groups", 1) or 1
    transposed = bool(call.argument(7 if backward else 6, "transposed", False))
    to_input, to_weight, to_bias = call.argument(10, "output_mask", (True,) * 3) if backward else (False,) * 3
    peak = call.chip.peak(x.dtype, tf32=call.cudnn_tf32) if groups == 1 else call.chip.vector_peak(x.dtype)
    tensor_cores = groups == 1 and call.chip.tensor_peak(x.dtype, tf32=call.cudnn_tf32) > 0

    def over(kernel: str, op: str, a: Array, passes: int = 2) -> KernelWork:
        return KernelWork(kernel_name(kernel, op, x.dtype), grid(a.numel, 1024), moved=passes * a.bytes)

    def relayout(kind: str, a: Array) -> list[Work]:
        changes = tensor_cores and len(a.shape) == 4 and a.contiguous and a.shape[1] > 1
        return [over(f"cudnn::ops::{kind}Kernel", kind, a)] if changes else []

    def product(direction: str, a: Array, b: Array, result: Array) -> KernelWork:
        name = _name(call, x.dtype, f"{direction}_implicit_gemm", "nhwc_tilesize128x128x32", tf32=call.cudnn_tf32)
        if groups > 1:
            name = kernel_name(f"conv_depthwise2d_{direction}", call.op, x.dtype)
        # Rows: pixels of the result (of wgrad: output channels), columns: its channels (of wgrad: a filter's inputs).
        columns = max(1, math.prod(result.shape[1:]) if direction == "wgrad" else result.shape[1])
        blocks = max(1, -(-(result.numel // columns) // 128) * -(-columns // 128))
        split = max(1, min(16, call.chip.sms // blocks)) if direction == "wgrad" else 1  # a sum over all pixels
        return KernelWork(
            name, (blocks, 1, split), (128, 1, 1), 230, 98304 if tensor_cores else 0,
            operations=2.0 * (x if transposed else out).numel * math.prod(weight.shape[1:]), peak=peak, efficiency="conv",
            moved=a.bytes + b.bytes + result.bytes, whole_sm=groups == 1,
        )  # fmt: skip

    work = relayout("nchwToNhwc", out if backward else x)
    if not backward:
        work += [product("dgrad" if transposed else "fprop", x, weight, out), *relayout("nhwcToNchw", out)]
    if to_input:
        work += [product("dgrad", out, weight, x), *relayout("nhwcToNchw", x)]
    if to_weight:
        work += [*relayout("nchwToNhwc", x), product("wgrad", out, x, weight)]
    if to_bias:
        work.append(over("reduce_kernel", "sum", out, passes=1))
    if not backward and len(call.inputs) > 2:
        work.append(over("elementwise_kernel", "add", out))
    return work


def _attention(call: Call) -> list[Work]:
    """One kernel over blocks of queries: two products forward, five backward; a causal mask leaves about half."""
    backward = "backward" in call.op
    q, k = call.inputs[1:3] if backward else call.inputs[:2]
    batch, heads, length, size = q.shape
    causal = bool(call.argument(7 if backward else 4, "is_causal", False))
    operations = (10.0 if backward else 4.0) * (0.5 if causal else 1) * batch * heads * length * k.shape[-2] * size
    flash = q.dtype in ("float16", "bfloat16") and call.chip.architecture >= 80
    function = f"pytorch_flash::flash_{'bwd' if backward else 'fwd'}_kernel"
    if not flash:
        function = f"PyTorchMemEffAttention::fmha_cutlass{'B' if backward else 'F'}_{_TYPES.get(q.dtype, 'f32')}"
    kernel = KernelWork(
        kernel_name(function, call.op, q.dtype), (-(-length // (128 if flash else 64)), batch, heads), (128, 1, 1), 255, 49152,
        operations, call.chip.peak(q.dtype, tf32=call.tf32), "attention", call.moved, whole_sm=True,
    )  # fmt: skip
    return [kernel]


def _lstm_layer(call: Call) -> list[Work]:
    """One LSTM layer in one direction: a product over all steps, then one a step; backward all of it twice.

    mkldnn_rnn_layer(input, weight_ih, weight_hh, bias_ih, bias_hh, hx, cx, ...), input (time, batch, features).
    """
    x, _, weight_hh = call.inputs[:3]
    time, batch, features = x.shape
    gates, hidden = weight_hh.shape
    name = kernel_name(f"LSTM_elementWise_{'bp1' if 'backward' in call.op else 'fp'}", call.op, x.dtype)
    moved = x.itemsize * batch * (gates + 3 * hidden)
    cell = KernelWork(name, grid(batch * hidden, 256), registers=40, operations=30 * batch * hidden, moved=moved)
    steps = [*gemm(call, x.dtype, batch, gates, hidden), cell] * time
    return (gemm(call, x.dtype, time * batch, gates, features) + steps) * (2 if "backward" in call.op else 1)


_PLANNERS = {
    "mm addmm _addmm_activation _int_mm _scaled_mm bmm baddbmm addbmm": _matmul,
    "convolution convolution_backward": _convolution,
    "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward": _attention,
    "mkldnn_rnn_layer mkldnn_rnn_layer_backward": _lstm_layer,
}
PRODUCTS: dict[str, Callable[[Call], list[Work]]] = {
    operator: planner for operators, planner in _PLANNERS.items() for operator in operators.split()
}
"""Operator -> what a GPU would run for it; whether float32 may be rounded to TF32 matters to these."""
