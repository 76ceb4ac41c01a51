"""Probes of occupancy: blocks that wait, as many as fit, so that achieved occupancy is the theoretical one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cuptiprof.data.occupancy import NO_CARVEOUT, Occupancy, occupancy
from cuptiprof.verify.kernel_launch import WARP, Buffer, KernelLaunch
from cuptiprof.verify.machine import Machine
from cuptiprof.verify.probe import Counted, Expected, NotHereError, Probe

_WAIT_NS = 2_000_000  # launching all blocks takes some microseconds: well under 1 % of it
_REGISTER_BLOCK = 256  # probe_spin_registers is compiled for it
_REGISTER_WORDS = 256 * 1024  # more than the values it keeps, for each thread of a block


def _theory(machine: Machine, kernel: str, block: int, shared: int) -> Occupancy:
    limits = machine.facts.limits
    if limits is None:
        major, minor = machine.facts.compute
        raise NotHereError(f"the limits of compute capability {major}.{minor} are not known")
    registers, static = machine.registers(kernel)
    # With shared memory the launch asks for the largest carve-out.
    return occupancy(limits, [block], [registers], [static], [shared], [100 if shared else NO_CARVEOUT])


def _full(machine: Machine, kernel: str, block: int, shared: int, args: tuple[Any, ...], limiter: str) -> Counted:
    """One full wave of blocks that all wait equally long."""
    theory = _theory(machine, kernel, block, shared)
    reached = theory.limiting_factors(0)
    if limiter not in reached.split("|"):
        raise NotHereError(f"on this GPU {reached} limits the blocks an SM holds, not {limiter}")
    blocks = int(theory.active_blocks[0])
    share = float(theory.theoretical()[0])
    grid = machine.facts.sms * blocks
    launch = KernelLaunch(
        kernel, grid, block, args, shared=shared, lasts=_WAIT_NS, active=1.0, resident=share * theory.max_warps_per_sm
    )
    warps = -(-block // WARP)
    counts = {"sm__ctas_launched": float(grid), "smsp__warps_launched": float(launch.warps)}
    return Counted(
        (KernelLaunch(**{**vars(launch), "counts": counts}),),
        (
            Expected(
                "achieved_occupancy",
                share,
                f"{limiter} lets an SM hold {blocks} blocks of {warps} warps of {theory.max_warps_per_sm}",
                0.03,
            ),
            Expected("sm_efficiency", 100.0, "every SM has its blocks all the time", 0.03),
            Expected("smsp__warps_launched.sum", launch.warps, f"{grid} blocks of {warps} warps"),
        ),
    )


def _registers(machine: Machine) -> Counted:
    memory = Buffer(4 * _REGISTER_WORDS)
    return _full(machine, "probe_spin_registers", _REGISTER_BLOCK, 0, (memory, _WAIT_NS), "REGS")


def _shared(machine: Machine) -> Counted:
    return _full(machine, "probe_spin_shared", 64, 20 << 10, (_WAIT_NS,), "SMEM")


def _large_shared(machine: Machine) -> Counted:
    limits = machine.facts.limits
    size = 56 << 10
    if limits is not None and limits.max_shared_memory_per_block < size:
        raise NotHereError("blocks of this GPU cannot have more than 48 KB of shared memory")
    return _full(machine, "probe_spin_shared", 64, size, (_WAIT_NS,), "SMEM")


def _blocks(machine: Machine) -> Counted:
    return _full(machine, "probe_spin", WARP, 0, (_WAIT_NS,), "BLOCKS")


def _warps(machine: Machine) -> Counted:
    return _full(machine, "probe_spin", 512, 0, (_WAIT_NS,), "WARPS")


def _tail(machine: Machine) -> Counted:
    """One block an SM, and half as many again: half of the SMs have nothing to do in the second wave."""
    facts = machine.facts
    if facts.limits is None:
        _theory(machine, "probe_spin_shared", 64, 0)
    assert facts.limits is not None
    shared = facts.limits.max_shared_memory_per_block  # two do not fit
    blocks = int(_theory(machine, "probe_spin_shared", 64, shared).active_blocks[0])
    if blocks != 1:
        raise NotHereError(f"an SM of this GPU holds {blocks} blocks of the largest shared memory")
    grid = facts.sms + facts.sms // 2
    active = grid / (2 * facts.sms)
    warps = 64 // WARP
    launch = KernelLaunch(
        "probe_spin_shared",
        grid,
        64,
        (_WAIT_NS,),
        shared=shared,
        counts={"sm__ctas_launched": float(grid)},
        lasts=2 * _WAIT_NS,
        active=active,
        resident=warps,
    )
    return Counted(
        (launch,),
        (
            Expected(
                "sm_efficiency", 100 * active, f"{grid} blocks on {facts.sms} SMs, one at a time: two waves", 0.03
            ),
            Expected(
                "achieved_occupancy",
                warps / facts.limits.max_warps_per_sm,
                f"one block of {warps} warps while an SM is active",
                0.03,
            ),
        ),
    )


def probes() -> Iterator[Probe]:
    """All probes of this subject."""
    subject = "occupancy"
    yield Probe("occupancy-warps", subject, "blocks limited by threads", _warps)
    yield Probe("occupancy-blocks", subject, "blocks of one warp: limited by their number", _blocks)
    yield Probe("occupancy-registers", subject, "blocks limited by registers", _registers)
    yield Probe("occupancy-shared", subject, "blocks limited by shared memory", _shared)
    yield Probe("occupancy-large-shared", subject, "blocks limited by shared memory beyond 48 KB", _large_shared)
    yield Probe("occupancy-tail", subject, "a grid of one and a half waves", _tail)
