"""What the model launches for an operator. It needs no torch: shapes in, launches out."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cuptiprof.data.chips import BOARDS
from cuptiprof.sim.pytorch.calls import Array, Call
from cuptiprof.sim.pytorch.launches import Copy, KernelWork, Set, Wait, Work, duration_ns
from cuptiprof.sim.pytorch.operators import OPERATORS, plan
from cuptiprof.sim.pytorch.tensor_lists import OptimizerStep


def ask(op: str, *args: Any, out: Any = None, chip: str = "H100", **fields: Any) -> list[Work]:
    outputs = () if out is None else out if isinstance(out, tuple) else (out,)
    return plan(Call(op, args, {}, outputs, BOARDS[chip], **fields))[0]


def one(work: list[Work]) -> KernelWork:
    (kernel,) = work
    assert isinstance(kernel, KernelWork)
    return kernel


@pytest.mark.parametrize(
    "m, n, k, batch", [(1, 1, 1, 1), (4096, 4096, 4096, 1), (257, 129, 100, 3), (64, 64, 65536, 1)]
)
def test_products_do_all_operations(m: int, n: int, k: int, batch: int) -> None:
    a, b, c = Array((batch, m, k)), Array((batch, k, n)), Array((batch, m, n))
    kernel = one(ask("bmm", a, b, out=c))
    assert kernel.operations == 2 * m * n * k * batch
    assert kernel.moved >= a.bytes + b.bytes + c.bytes
    tile = re.search(r"_(\d+)x(\d+)_", kernel.name)
    assert tile is not None
    tile_m, tile_n = int(tile[1]), int(tile[2])
    assert kernel.grid[0] * tile_n >= n and kernel.grid[1] * tile_m >= m
    assert ("splitK" in kernel.name) == (kernel.grid[2] > batch)


def test_tiles_fill_the_chip() -> None:
    def product(m: int, n: int, k: int) -> KernelWork:
        return one(ask("mm", Array((m, k)), Array((k, n)), out=Array((m, n))))

    assert product(8192, 8192, 8192).grid == (64, 64, 1) and "128x128" in product(8192, 8192, 8192).name
    assert "32x32" in product(256, 256, 64).name and product(256, 256, 64).grid == (8, 8, 1)
    assert product(64, 64, 65536).grid == (1, 1, 132)  # one tile and a long sum


def test_product_names_follow_chip_type_and_layout() -> None:
    x, w = Array((512, 512)), Array((512, 512), strides=(1, 512))
    assert one(ask("mm", x, w, out=x)).name.startswith("ampere_sgemm_") and "_tn" in one(ask("mm", x, w, out=x)).name
    assert "_nn" in one(ask("mm", x, x, out=x)).name and "_nt" in one(ask("mm", w, x, out=x)).name
    assert "tf32f32" in one(ask("mm", x, w, out=x, tf32=True)).name
    half = Array((512, 512), "float16")
    assert one(ask("mm", half, half, out=half, chip="V100")).name.startswith("sm70_xmma_gemm_f16f16")
    assert one(ask("mm", half, half, out=half, chip="A100")).name.startswith("sm80_xmma_gemm_f16f16")
    brain = Array((512, 512), "bfloat16")
    assert one(ask("mm", brain, brain, out=brain)).name.startswith("sm90_xmma_gemm_bf16bf16_bf16f32")
    assert one(ask("mm", brain, brain, out=brain, chip="V100")).peak == pytest.approx(BOARDS["V100"].float32, rel=0.6)


def test_faster_types_take_less_time() -> None:
    def ns(dtype: str, **fields: Any) -> int:
        a = Array((4096, 4096), dtype)
        return duration_ns(BOARDS["H100"], one(ask("mm", a, a, out=a, **fields)))

    assert ns("bfloat16") < ns("float32", tf32=True) < ns("float32")


def test_copies() -> None:
    a = Array((64, 32), strides=(32, 1))
    turned = Array((64, 32), strides=(1, 64))
    assert ask("clone", a, out=a) == [Copy("DtoD", a.bytes)]
    assert ask("copy_", turned, turned, out=turned) == [Copy("DtoD", a.bytes)]
    assert one(ask("clone", turned, out=a)).name.startswith("void at::native::elementwise_kernel<")
    assert "bfloat16_copy" in one(ask("_to_copy", a, out=Array((64, 32), "bfloat16", (32, 1)))).name
    assert ask("lift_fresh", a, out=a) == [Copy("HtoD", a.bytes), Wait()]
    assert ask("_local_scalar_dense", Array((), "float64")) == [Copy("DtoH", 8), Wait()]


def test_broadcast_is_not_vectorized() -> None:
    a, row = Array((64, 32)), Array((32,))
    assert "vectorized" in one(ask("add", a, a, out=a, pointwise=True)).name
    assert "vectorized" not in one(ask("add", a, row, out=a, pointwise=True)).name
    assert one(ask("add", a, row, out=a, pointwise=True)).moved == 2 * a.bytes + row.bytes
    expanded = Array((64, 32), strides=(0, 1))
    assert expanded.bytes == row.bytes and not expanded.dense


def test_an_embedding_reads_rows_not_the_table() -> None:
    table, indices, out = Array((1_000_000, 128)), Array((32,), "int64"), Array((32, 128))
    assert one(ask("embedding", table, indices, out=out)).moved == 2 * out.bytes + indices.bytes


def test_reductions() -> None:
    whole = ask("sum", Array((1 << 24,)), out=Array(()))
    assert isinstance(whole[0], Set) and isinstance(whole[1], KernelWork)  # blocks share one output: a semaphore
    rows = one(ask("mean", Array((4096, 512)), out=Array((4096,))))
    assert rows.moved == 4 * (4096 * 512 + 4096) and "mean" in rows.name
    assert ask("sum", Array((0,)), out=Array(())) == []


def test_boolean_indexing_waits() -> None:
    x, mask = Array((100,)), Array((100,), "bool")
    assert Wait() in ask("index", x, [mask], out=Array((7,)))
    assert Wait() not in ask("index", x, [Array((7,), "int64")], out=Array((7,)))


def test_attention() -> None:
    q = Array((2, 8, 1024, 64), "bfloat16")
    full = one(ask("_scaled_dot_product_flash_attention_for_cpu", q, q, q, 0.0, False, out=q))
    causal = one(ask("_scaled_dot_product_flash_attention_for_cpu", q, q, q, 0.0, True, out=q))
    assert full.operations == 4 * 2 * 8 * 1024 * 1024 * 64 == 2 * causal.operations
    assert "flash_fwd_kernel" in full.name
    single = Array(q.shape)
    assert "fmha_cutlassF_f32" in one(ask("_scaled_dot_product_flash_attention_for_cpu", single, single, single, out=single)).name  # fmt: skip
    backward = ask("_scaled_dot_product_flash_attention_for_cpu_backward", q, q, q, q, q, q, 0.0, False, out=(q, q, q))
    assert sum(w.operations for w in backward if isinstance(w, KernelWork)) == 2.5 * full.operations


def test_convolution() -> None:
    x, w, y = Array((8, 16, 32, 32)), Array((64, 16, 3, 3)), Array((8, 64, 30, 30))
    rest = (None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    work = [k for k in ask("convolution", x, w, *rest, out=y) if isinstance(k, KernelWork)]
    main = [k for k in work if k.operations]
    assert len(main) == 1 and main[0].operations == 2 * y.numel * 16 * 9
    assert [re.findall(r"n\w+To\w+Kernel", k.name) for k in work if k not in main] == [
        ["nchwToNhwcKernel"],
        ["nhwcToNchwKernel"],
    ]
    assert main[0].peak == BOARDS["H100"].tf32  # torch's default for convolutions
    assert len(ask("convolution", x, w, *rest, out=y, cudnn_tf32=False)) == 1
    back = ask("convolution_backward", y, x, w, [64], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [False, True, True], out=(w, w))  # fmt: skip
    names = [k.name for k in back if isinstance(k, KernelWork)]
    assert any("wgrad" in n for n in names) and not any("dgrad" in n for n in names)
    assert any("reduce_kernel" in n for n in names)


@pytest.mark.parametrize(
    "sizes, launches", [([10] * 110, 1), ([10] * 111, 2), ([65536 * 320], 1), ([65536 * 321], 2), ([0, 0], 0)]
)
def test_list_launches_hold_so_many_tensors_and_blocks(sizes: list[int], launches: int) -> None:
    tensors = [Array((n,)) for n in sizes]
    work = ask("_foreach_mul_", tensors, 0.5)
    assert len(work) == launches
    assert sum(w.operations for w in work if isinstance(w, KernelWork)) == sum(sizes)
    assert sum(w.moved for w in work if isinstance(w, KernelWork)) == pytest.approx(2 * 4 * sum(sizes))


def test_an_optimizer_step_becomes_list_launches() -> None:
    parameters = [Array((100, 7)), Array((5,)), Array((3, 3))]
    step = OptimizerStep(len(parameters))
    ops = ["mul_", "lerp_", "mul_", "addcmul_", "sqrt", "addcdiv_"]
    for p in parameters:
        for op in ops:
            step.add(Call(op, (p,), {}, (p,), BOARDS["H100"], True))
    work = step.work()
    assert len(work) == len(ops)  # each operator of the sequence once, over all parameters
    uneven = OptimizerStep(3)
    for p, op in zip(parameters, ("mul_", "sqrt", "mul_"), strict=True):
        uneven.add(Call(op, (p,), {}, (p,), BOARDS["H100"], True))
    assert len(uneven.work()) == 2
    assert OptimizerStep(3).work() == []


def test_the_unknown_is_elementwise_and_said_to_be_unknown() -> None:
    a = Array((64, 64))
    work, known = plan(Call("no_such_operator", (a,), {}, (a,), BOARDS["H100"]))
    assert not known and one(work).moved == 2 * a.bytes
    assert plan(Call("no_such_operator", (a,), {}, (a,), BOARDS["H100"], True))[1]
    for op in ("empty", "_unsafe_view", "set_"):
        assert plan(Call(op, (a,), {}, (a,), BOARDS["H100"])) == ([], True)


@pytest.mark.parametrize("op", sorted(OPERATORS))
def test_every_operator_gives_launches_that_a_gpu_takes(op: str) -> None:
    """Arguments that make no sense may be refused (the caller counts that); what is launched must be launchable."""
    x, i, square = Array((4, 4, 6, 6)), Array((4,), "int64"), Array((4, 4))
    planned = 0
    for chip in BOARDS.values():
        for args in (
            (x, x, x, x, x),
            (x, i, x),
            ([x, x], 0),
            (square,) * 6,
            (Array((3, 4, 4)),) * 4,
            (x, [6], x),
            (Array((3, 4, 4)), square, square),
        ):
            try:
                work, _ = plan(Call(op, args, {}, (args[0] if isinstance(args[0], Array) else x,), chip))
            except (ValueError, IndexError, TypeError, AttributeError):
                continue
            planned += 1
            for w in work:
                assert duration_ns(chip, w) >= 0
                if isinstance(w, KernelWork):
                    assert min(w.grid) >= 1 and w.grid[0] < 1 << 31 and max(w.grid[1:]) < 1 << 16
                    assert 1 <= w.block[0] * w.block[1] * w.block[2] <= 1024
                    assert w.shared <= (232448 if chip.architecture >= 90 else 98304)
                    assert w.registers * w.block[0] * w.block[1] * w.block[2] <= 65536
    assert planned >= len(BOARDS)
