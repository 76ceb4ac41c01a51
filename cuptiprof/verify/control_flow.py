"""Probes of branches, atomics and shared memory."""

from __future__ import annotations

from collections.abc import Iterator

from cuptiprof import _core
from cuptiprof.verify.kernel_launch import SECTOR, WARP, Buffer, KernelLaunch
from cuptiprof.verify.machine import Machine
from cuptiprof.verify.probe import Counted, Expected, Probe

_SHAPE = _core.PROBE_SHAPE
_BLOCK = 256
_WORD = 4
_BANKS = 32
_ONE = 0x3F800000
LOOP_FRAME, KERNEL_FRAME = 5, 64
"""Most instructions of probe_branch beside its FMAs: in a turn of the loop, and around it. The machine code of every
architecture is checked against them."""


def _branch(ways: int) -> Probe:
    def plan(machine: Machine) -> Counted:
        grid, iterations = machine.facts.sms * 2, 64
        threads, warps = grid * _BLOCK, grid * _BLOCK // WARP
        done = threads * iterations * _SHAPE["ops_per_iteration"]
        issued = warps * ways * iterations * _SHAPE["ops_per_iteration"]
        turn = _SHAPE["ops_per_iteration"] + LOOP_FRAME
        most = warps * (ways * iterations * turn + (ways + 1) * KERNEL_FRAME)
        counts = {
            "smsp__sass_thread_inst_executed_op_ffma_pred_on": float(done),
            "smsp__thread_inst_executed": float(done),
            "smsp__inst_executed": float(issued),
            "smsp__branch_targets_threads_uniform.numerator": float(iterations * warps),
            "smsp__branch_targets_threads_uniform.denominator": float(iterations * warps),
        }
        expected = [
            Expected("flop_count_sp_fma", done, f"{threads} threads take the loop once each, in whatever group"),
            Expected(
                "warp_execution_efficiency",
                100 / ways,
                f"{WARP // ways} of {WARP} lanes at a time; the rest of the kernel is small",
                0.03,
            ),
            Expected(
                "inst_executed",
                (issued + most) / 2,
                f"{ways} times the loop a warp, whose frame is {LOOP_FRAME} instructions a turn at most",
                margin=(most - issued) / 2,
            ),
        ]
        if ways == 1:
            expected.append(
                Expected("branch_efficiency", 100.0, "all lanes of a warp take every branch together", 1e-4)
            )
        launch = KernelLaunch(
            "probe_branch", grid, _BLOCK, (Buffer(threads * _WORD), iterations, ways, _ONE), counts=counts
        )
        return Counted((launch,), tuple(expected))

    name = "branch-uniform" if ways == 1 else f"branch-{ways}-ways"
    return Probe(name, "control flow", f"the lanes of a warp take a loop in {ways} groups", plan)


def _atomics(kind: str) -> Probe:
    def plan(machine: Machine) -> Counted:
        grid, iterations = machine.facts.sms * 2, 32
        warps = grid * _BLOCK // WARP
        requests = warps * iterations
        sectors = requests * WARP * _WORD // SECTOR
        memory = Buffer(grid * _BLOCK * _WORD)
        why = f"{warps} warps x {iterations} turns"
        op = {"reduction": "red", "atomic": "atom"}[kind]
        counted = (
            "smsp__inst_executed_op_global_red" if kind == "reduction" else "smsp__sass_inst_executed_op_global_atom"
        )
        counts = {
            counted: float(requests),
            f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}": float(requests),
            f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}": float(sectors),
        }
        executed = "inst_executed_global_reductions" if kind == "reduction" else "inst_executed_global_atomics"
        return Counted(
            (KernelLaunch(f"probe_{kind}", grid, _BLOCK, (memory, iterations), counts=counts),),
            (
                Expected(executed, requests, why),
                Expected(f"global_{kind}_requests", requests, why),
                Expected(
                    "sum in memory",
                    iterations,
                    "each word is added to once a turn, however often the kernel was replayed",
                    hardware_only=True,
                ),
            ),
            words={"sum in memory": memory},
        )

    return Probe(kind, "control flow", f"{kind}s on words of their own", plan)


def _shared(kind: str, ways: int) -> Probe:
    def plan(machine: Machine) -> Counted:
        grid, iterations = machine.facts.sms * 2, 32
        warps = grid * _BLOCK // WARP
        requests = warps * iterations * _SHAPE["shared_per_iteration"]
        op = "ld" if kind == "load" else "st"
        counts = {
            f"smsp__inst_executed_op_shared_{op}": float(requests),
            f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}": float(requests * _lanes_in_a_bank(ways)),
            f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}": float(requests * (_lanes_in_a_bank(ways) - 1)),
        }
        launch = KernelLaunch(
            f"probe_shared_{kind}", grid, _BLOCK, (Buffer(grid * _BLOCK * _WORD), iterations, ways), counts=counts
        )

        return Counted(
            (launch,),
            (
                Expected(f"shared_{kind}_transactions_per_request", ways, f"{ways} lanes meet in a bank", 0.02),
                Expected(f"inst_executed_shared_{kind}s", requests, "one a warp, turn and unrolled step"),
                Expected(f"shared_{kind}_transactions", requests * ways, f"{ways} wavefronts each", 0.02),
                Expected(
                    f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum",
                    requests * (ways - 1),
                    f"{ways - 1} wavefronts too many each",
                    tolerance=0.02,
                    margin=requests * 0.02,
                ),
            ),
        )

    return Probe(f"shared-{kind}-{ways}-ways", "shared memory", f"{kind}s with bank conflicts of {ways} lanes", plan)


def _lanes_in_a_bank(stride: int) -> int:
    """The most lanes that use one bank when lane i uses word i * stride."""
    banks = [lane * stride % _SHAPE["shared_words"] % _BANKS for lane in range(WARP)]
    return max(banks.count(b) for b in banks)


def probes() -> Iterator[Probe]:
    """All probes of these subjects."""
    for ways in (1, 2, 4):
        yield _branch(ways)
    for kind in ("reduction", "atomic"):
        yield _atomics(kind)
    for kind in ("load", "store"):
        for ways in (1, 2, 4, 32):
            yield _shared(kind, ways)
