"""Probes of arithmetic: chains of one instruction, matrix products, instruction counts."""

from __future__ import annotations

from collections.abc import Iterator

from cuptiprof import _core
from cuptiprof.verify.kernel_launch import WARP, Buffer, KernelLaunch
from cuptiprof.verify.machine import Machine
from cuptiprof.verify.probe import Counted, Expected, Probe

_SHAPE = _core.PROBE_SHAPE
_BLOCK = 256
_ONE = {"f16": 0x3C003C00, "f32": 0x3F800000, "f64": 0x3FF0000000000000}
"""1.0 as bits (two halves for f16): chains of additions and products stay normal numbers."""
_PRECISION = {"f16": "hp", "f32": "sp", "f64": "dp"}
_LETTER = {"f16": "h", "f32": "f", "f64": "d"}
_BYTES = {"f16": 4, "f32": 4, "f64": 8}


def _chain(operation: str, dtype: str) -> Probe:
    def plan(machine: Machine) -> Counted:
        iterations = 8 if dtype == "f64" else 32
        grid = machine.facts.sms * 4
        launch = KernelLaunch(
            f"probe_{operation}_{dtype}",
            grid,
            _BLOCK,
            (Buffer(grid * _BLOCK * _SHAPE["chains"] * _BYTES[dtype]), iterations, _ONE[dtype]),
        )
        done = launch.threads * iterations * _SHAPE["ops_per_iteration"]
        counts = {
            f"smsp__sass_thread_inst_executed_op_{_LETTER[dtype]}{o}_pred_on": float(done if o == operation else 0)
            for o in ("add", "mul", "fma")
        }
        if dtype == "f32":  # Blackwell's instructions on two floats at once, of which there are none
            counts |= {f"smsp__sass_thread_inst_executed_op_f{o}2_pred_on": 0.0 for o in ("add", "mul", "fma")}
        counts[f"smsp__sass_thread_inst_executed_op_fp{dtype[1:]}_pred_on"] = float(done)
        why = f"{launch.threads} threads x {iterations} turns x {_SHAPE['ops_per_iteration']} instructions"
        # The assembler sets constants with HFMA2, at most two in such a kernel, and turns half of the half-precision
        # additions and products into HFMA2 to spread them over two pipes: only their sum is known.
        constants = 2 * launch.threads
        if dtype == "f16":
            expected = [Expected("inst_fp_16", done, why + ", two halves each", margin=constants)]
            if operation == "fma":
                expected.append(Expected("flop_count_hp_fma", done, why, margin=constants))
                expected.append(Expected("flop_count_hp", 2 * done, "2 an FMA of either half", margin=2 * constants))
        else:
            precision = _PRECISION[dtype]
            flops = 2 if operation == "fma" else 1
            expected = [
                Expected(f"flop_count_{precision}_{operation}", done, why),
                Expected(f"flop_count_{precision}", flops * done, f"{flops} an instruction"),
                Expected(f"inst_fp_{dtype[1:]}", done, "there is no other such instruction"),
            ]
        return Counted((KernelLaunch(**{**vars(launch), "counts": counts}),), tuple(expected))

    return Probe(f"{operation}-{dtype}", "arithmetic", f"chains of {operation.upper()} in {dtype}", plan)


def _mma(machine: Machine) -> Counted:
    iterations, block = 32, 128
    grid = machine.facts.sms * 2
    launch = KernelLaunch(
        "probe_mma_f16",
        grid,
        block,
        (Buffer(grid * block * _SHAPE["chains"] * 16), iterations, _ONE["f16"]),
    )
    done = launch.warps * iterations * _SHAPE["mma_per_iteration"]
    counts = {"sm__inst_executed_pipe_tensor": float(done), "sm__inst_executed_pipe_tensor_op_hmma": float(done)}
    why = f"{launch.warps} warps x {iterations} turns x {_SHAPE['mma_per_iteration']} instructions"
    return Counted(
        (KernelLaunch(**{**vars(launch), "counts": counts}),),
        (
            Expected("sm__inst_executed_pipe_tensor.sum", done, why),
            Expected("sm__inst_executed_pipe_tensor_op_hmma.sum", done, why),
        ),
    )


def _instructions(machine: Machine) -> Counted:
    grid = machine.facts.sms * 4
    memory = Buffer(grid * _BLOCK * _SHAPE["chains"] * 4)
    sizes = {"short": _SHAPE["straight_short"], "long": _SHAPE["straight_long"]}
    frame = 24  # of the simulated kernels; any number would do, for only the difference counts
    launches = []
    for name, size in sizes.items():
        launch = KernelLaunch(f"probe_straight_{name}", grid, _BLOCK, (memory, _ONE["f32"]), active=0.9)
        executed = float(launch.warps * (size + frame))
        counts = {"sm__inst_executed": executed, "smsp__inst_executed": executed, "smsp__inst_issued": executed}
        launches.append(KernelLaunch(**{**vars(launch), "counts": counts}))
    more = (sizes["long"] - sizes["short"]) * launches[0].warps
    warps = launches[0].warps
    return Counted(
        tuple(launches),
        (
            Expected(
                "inst_executed", more, f"{more // warps} more instructions in each of {warps} warps", launch=1, minus=0
            ),
            Expected("smsp__warps_launched.sum", warps, f"{grid} blocks of {_BLOCK // WARP} warps"),
            Expected(
                "ipc",
                lambda v: v["sm__inst_executed.sum"] / v["sm__cycles_active.sum"],
                "instructions over active cycles, both measured",
                0.02,
            ),
            Expected(
                "inst_per_warp",
                lambda v: v["sm__inst_executed.sum"] / warps,
                "instructions measured over warps launched",
                0.001,
            ),
        ),
    )


def probes() -> Iterator[Probe]:
    """All probes of this subject."""
    for dtype in _PRECISION:
        for operation in ("fma", "add", "mul"):
            yield _chain(operation, dtype)
    yield Probe("mma-f16", "arithmetic", "matrix products on tensor cores", _mma)
    yield Probe(
        "instructions", "arithmetic", "two kernels that differ by a known number of instructions", _instructions
    )
