"""``cuptiprof verify``: kernels whose counters are known by arithmetic, and whether this profiler reads them right."""

from __future__ import annotations

from cuptiprof.verify.checking import FAILED, RIGHT, SKIPPED, WRONG, Check, all_probes, choose, run_probes
from cuptiprof.verify.kernel_launch import Facts, KernelLaunch
from cuptiprof.verify.machine import CudaMachine, Machine
from cuptiprof.verify.probe import Counted, Expected, Measured, Probe, Traced
from cuptiprof.verify.table import list_report, make_report

__all__ = [
    "FAILED",
    "RIGHT",
    "SKIPPED",
    "WRONG",
    "Check",
    "Counted",
    "CudaMachine",
    "Expected",
    "Facts",
    "KernelLaunch",
    "Machine",
    "Measured",
    "Probe",
    "Traced",
    "all_probes",
    "choose",
    "exit_status",
    "list_report",
    "make_report",
    "open_machine",
    "run_probes",
]


def open_machine(device: str | None = None) -> Machine:
    """The machine that `device` names: "cuda", "sim" or "sim:CHIP"; None: CUPTIPROF_DEVICE, else "cuda".

    Raises:
        DeviceError: there is no such device here, or this build has no probes.
        CuptiError: a CUDA call failed.
    """
    import os

    from cuptiprof.errors import DeviceError

    chosen = device or os.environ.get("CUPTIPROF_DEVICE") or "cuda"
    if chosen == "cuda":
        return CudaMachine()
    if chosen.partition(":")[0] == "sim":
        from cuptiprof.verify.simulated import SimMachine

        return SimMachine(chosen)
    raise DeviceError(f"probes cannot run on {chosen!r}", hint='one of: "cuda", "sim", "sim:A100"')


def exit_status(checks: list[Check]) -> int:
    """0: every number is right; 1: one is wrong; 2: something could not be measured, or nothing was."""
    verdicts = {c.verdict for c in checks}
    if WRONG in verdicts:
        return 1
    return 2 if FAILED in verdicts or RIGHT not in verdicts else 0
