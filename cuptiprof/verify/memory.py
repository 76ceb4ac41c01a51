"""Probes of global memory: streams, caches, strides."""

from __future__ import annotations

from collections.abc import Iterator

from cuptiprof.verify.kernel_launch import SECTOR, WARP, Buffer, Facts, KernelLaunch
from cuptiprof.verify.machine import Machine
from cuptiprof.verify.probe import Counted, Expected, Probe

_ELEMENT = 16  # bytes a thread reads or writes at a time
_BLOCK = 256
_BLOCKS_PER_SM = 8
_WORD = 4
_LD = "mem_global_op_ld"
_ST = "mem_global_op_st"
_L2_READ = "lts__t_sectors_srcunit_tex_op_read"


def _grid(facts: Facts) -> int:
    return facts.sms * _BLOCKS_PER_SM


def _stream_bytes(facts: Facts, share: int) -> int:
    """16 times the L2 cache, whole turns of the grid, and no more than a `share`-th of free memory."""
    turn = _grid(facts) * _BLOCK * _ELEMENT
    most = min(16 * facts.l2_bytes, facts.memory_bytes // share)
    return max(most // turn, 1) * turn


def _l2_traffic(read: float = 0, write: float = 0, hits: float = 0) -> dict[str, float]:
    """Raw counters of sectors that L1 asks of L2."""
    return {
        _L2_READ: read / SECTOR,
        f"{_L2_READ}_lookup_hit": hits / SECTOR,
        "lts__t_sectors_srcunit_tex_op_write": write / SECTOR,
    }


def _left_in_l2(facts: Facts, size: int) -> float:
    """Relative: as much as L2 holds may be written late, or was left there by what ran before."""
    return facts.l2_bytes / size + 0.02


def _read(machine: Machine) -> Counted:
    facts = machine.facts
    size = _stream_bytes(facts, 4)
    counts = {
        f"l1tex__t_sectors_pipe_lsu_{_LD}": size / SECTOR,
        "dram__bytes_read": float(size),
        **_l2_traffic(read=size),
    }
    launch = KernelLaunch(
        "probe_read", _grid(facts), _BLOCK, (Buffer(size), Buffer(_WORD), size // _ELEMENT, 1), counts=counts
    )
    return Counted(
        (launch,),
        (
            Expected(
                "dram_read_bytes", size, "every byte once; the buffer is larger than L2", _left_in_l2(facts, size)
            ),
            Expected("gld_transactions", size // SECTOR, "every 32-byte sector once"),
            Expected("l2_l1_read_transactions", size // SECTOR, "L1 is passed by (ld.cg)", 0.01),
            Expected("l2_l1_read_hit_rate", 0.0, "cold: nothing is read twice", margin=100 * _left_in_l2(facts, size)),
        ),
    )


def _write(machine: Machine) -> Counted:
    facts = machine.facts
    size = _stream_bytes(facts, 4)
    counts = {
        f"l1tex__t_sectors_pipe_lsu_{_ST}": size / SECTOR,
        "dram__bytes_write": float(size),
        **_l2_traffic(write=size),
    }
    launch = KernelLaunch("probe_write", _grid(facts), _BLOCK, (Buffer(size), size // _ELEMENT, 0), counts=counts)
    return Counted(
        (launch,),
        (
            Expected("dram_write_bytes", size, "every byte once", _left_in_l2(facts, size)),
            Expected("gst_transactions", size // SECTOR, "every 32-byte sector once"),
            Expected("l2_l1_write_transactions", size // SECTOR, "L1 writes through", 0.01),
        ),
    )


def _copy(machine: Machine) -> Counted:
    facts = machine.facts
    size = _stream_bytes(facts, 8)
    counts = {
        f"l1tex__t_sectors_pipe_lsu_{_LD}": size / SECTOR,
        f"l1tex__t_sectors_pipe_lsu_{_ST}": size / SECTOR,
        "dram__bytes_read": float(size),
        "dram__bytes_write": float(size),
        **_l2_traffic(read=size, write=size),
    }
    launch = KernelLaunch(
        "probe_copy", _grid(facts), _BLOCK, (Buffer(size), Buffer(size), size // _ELEMENT), counts=counts
    )
    return Counted(
        (launch,),
        (
            Expected("dram_read_bytes", size, "the source once", _left_in_l2(facts, size)),
            Expected("dram_write_bytes", size, "the destination once", _left_in_l2(facts, size)),
            Expected("gld_transactions", size // SECTOR, "every sector of the source once"),
            Expected("gst_transactions", size // SECTOR, "every sector of the destination once"),
        ),
    )


def _l2_resident(machine: Machine) -> Counted:
    facts, rounds = machine.facts, 16
    turn = _grid(facts) * _BLOCK * _ELEMENT
    size = max(facts.l2_bytes // 8 // turn, 1) * turn
    if size > facts.l2_bytes // 2:
        raise AssertionError("a turn of the grid does not fit into L2")
    traffic = size * rounds
    counts = {
        f"l1tex__t_sectors_pipe_lsu_{_LD}": traffic / SECTOR,
        "dram__bytes_read": size / 2,
        **_l2_traffic(read=traffic, hits=traffic - size / 2),
    }
    args = (Buffer(size), Buffer(_WORD), size // _ELEMENT, rounds)
    cold = 100 / rounds  # percent of the reads that are the first of their sector
    return Counted(
        (KernelLaunch("probe_read", _grid(facts), _BLOCK, args, counts=counts),),
        (
            Expected("l2_l1_read_transactions", traffic // SECTOR, f"{rounds} times the buffer", 0.01),
            Expected(
                "l2_l1_read_hit_rate",
                100 - cold / 2,
                f"warm: all but at most the first of {rounds} rounds",
                margin=cold / 2 + 1,
            ),
            Expected("dram_read_bytes", size / 2, "the buffer at most once", margin=size * 0.55),
        ),
    )


def _l1_warm(machine: Machine) -> Counted:
    facts, rounds = machine.facts, 32
    grid = facts.sms * 2
    threads = grid * _BLOCK
    sectors = threads * _WORD // SECTOR * rounds
    hits = sectors - sectors // rounds
    counts = {
        f"l1tex__t_sectors_pipe_lsu_{_LD}": float(sectors),
        f"l1tex__t_sectors_pipe_lsu_{_LD}_lookup_hit": float(hits),
        f"l1tex__t_requests_pipe_lsu_{_LD}": float(threads // WARP * rounds),
    }
    args = (Buffer(threads * _WORD), Buffer(_WORD), rounds)
    return Counted(
        (KernelLaunch("probe_read_l1", grid, _BLOCK, args, counts=counts),),
        (
            Expected("gld_transactions", sectors, "4 sectors a warp and round"),
            Expected("global_load_requests", threads // WARP * rounds, "one a warp and round"),
            Expected(
                "l1_cache_global_hit_rate",
                100 * (1 - 1 / rounds),
                f"each sector is fetched once and then found {rounds - 1} times",
                margin=1.0,
            ),
        ),
    )


def _sectors_of_warp(stride: int, offset: int) -> int:
    """Sectors that 32 lanes touch with one word each, `stride` words apart, from word `offset` on."""
    return len({(lane * stride + offset) * _WORD // SECTOR for lane in range(WARP)})


def _strided(kind: str, stride: int, offset: int) -> Probe:
    def plan(machine: Machine) -> Counted:
        grid = machine.facts.sms * 2
        threads = grid * _BLOCK
        warps = threads // WARP
        memory = Buffer((threads * stride + offset) * _WORD)
        args = (memory, Buffer(_WORD), stride, offset) if kind == "load" else (memory, stride, offset)
        op = _LD if kind == "load" else _ST
        sectors = sum(_sectors_of_warp(stride, w * WARP * stride + offset) for w in range(8)) * warps // 8
        counts = {
            f"l1tex__t_sectors_pipe_lsu_{op}": float(sectors),
            f"l1tex__t_requests_pipe_lsu_{op}": float(warps),
            f"smsp__sass_data_bytes_{op}": float(threads * _WORD),
            f"smsp__sass_sectors_{op}": float(sectors),
        }
        short = "gld" if kind == "load" else "gst"
        # In other words: of what a warp moves, what it asked for.
        span = (WARP - 1) * stride * _WORD + _WORD if stride <= SECTOR // _WORD else 0
        moved = -(-(offset * _WORD % SECTOR + span) // SECTOR)
        efficiency = 100 * WARP * _WORD / (moved * SECTOR)
        return Counted(
            (KernelLaunch(f"probe_{kind}_strided", grid, _BLOCK, args, counts=counts),),
            (
                Expected(f"{short}_efficiency", efficiency, f"{WARP} words of 4 bytes in {moved} sectors a warp", 1e-4),
                Expected(f"{short}_transactions_per_request", moved, "sectors a warp touches", 1e-4),
                Expected(f"{short}_transactions", moved * warps, f"the same of {warps} warps"),
            ),
        )

    name = f"{kind}-misaligned" if offset else f"{kind}-stride-{stride}"
    what = (
        f"{kind}s of 4 bytes, {offset * _WORD} bytes off" if offset else f"{kind}s of 4 bytes, {stride * _WORD} apart"
    )
    return Probe(name, "memory", what, plan)


def probes() -> Iterator[Probe]:
    """All probes of this subject."""
    yield Probe("stream-read", "memory", "read a buffer larger than L2", _read)
    yield Probe("stream-write", "memory", "write a buffer larger than L2", _write)
    yield Probe("stream-copy", "memory", "copy a buffer larger than L2", _copy)
    yield Probe("l2-resident", "memory", "read an eighth of L2 again and again", _l2_resident)
    yield Probe("l1-warm", "memory", "each thread reads one word again and again through L1", _l1_warm)
    for kind in ("load", "store"):
        for stride in (1, 2, 4, 8):
            yield _strided(kind, stride, 0)
        yield _strided(kind, 1, 1)
