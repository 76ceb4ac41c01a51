"""The table of boards, the compute capabilities, and the stand-in's own list say the same."""

from __future__ import annotations

import pytest

import cuptiprof
from cuptiprof.data.chips import BOARDS, CHIPS, flops_per_clock
from cuptiprof.data.occupancy import chip_limits
from cuptiprof.sim.sim_device import SimDevice


@pytest.mark.parametrize("name", BOARDS)
def test_the_stand_in_is_the_board(name: str, sim: SimDevice) -> None:
    sim.reset(chip=name, virtual_clock=True)
    with cuptiprof.profile(device=f"sim:{name}") as prof:
        sim.launch("k")
    board, device = BOARDS[name], prof.result().devices.row(0)
    assert device["name"] == f"{board.product} (simulated)"
    assert 10 * device["compute_capability_major"] + device["compute_capability_minor"] == board.architecture
    assert (device["num_multiprocessors"], device["core_clock_rate"]) == (board.sms, board.clock_khz)
    assert device["global_memory_bandwidth"] * 1e3 == pytest.approx(board.dram, rel=0.01)
    limits = chip_limits(device["compute_capability_major"], device["compute_capability_minor"])
    assert limits is not None
    assert device["max_warps_per_multiprocessor"] == limits.max_warps_per_sm
    assert device["max_blocks_per_multiprocessor"] == limits.max_blocks_per_sm
    assert device["max_shared_memory_per_multiprocessor"] == limits.shared_memory_per_sm


@pytest.mark.parametrize("name", BOARDS)
def test_sheets_are_what_the_sms_do_in_a_clock(name: str) -> None:
    """Data sheets round, and count different clocks for different units (an H100's 1.83 and 1.98 GHz)."""
    board = BOARDS[name]
    cc = CHIPS[board.chip].compute_capability
    assert cc is not None
    rates = flops_per_clock()[cc]
    for unit, sheet in (("float32", board.float32), ("tf32", board.tf32), ("half", board.half), ("byte", board.int8)):
        assert rates[unit] * board.sms * board.clock_khz * 1e3 == pytest.approx(sheet, rel=0.1), unit


def test_chips_are_like_chips_of_the_table() -> None:
    assert all(chip.like in CHIPS for chip in CHIPS.values())
    known = [chip.compute_capability for chip in CHIPS.values() if chip.compute_capability]
    assert all(chip_limits(*cc) for cc in known)
