"""Nsight Compute's rules on the L2 cache: data that lie in another memory than the GPU's, and compression."""

from __future__ import annotations

from collections.abc import Iterator

from cuptiprof.analysis import thresholds as limits
from cuptiprof.analysis.kernel_rules.rule_message import Facts, Message, messages

CAPABILITY = "compute capability"

TEX = "lts__t_sectors_srcunit_tex.avg.pct_of_peak_sustained_elapsed"
MISSES = "lts__t_sectors_srcunit_tex_lookup_miss.sum"
_APERTURE = (
    "lts__t_sectors_srcunit_tex_aperture_{}_lookup_miss.sum",
    "syslts__t_sectors_srcunit_tex_aperture_{}_lookup_miss.sum",
)
"""up to Hopper and on GB100 and GB202, where misses of a memory that is not the GPU's have a unit of their own"""
_DRAM = "dram__bytes.sum.per_second"
_PCIE = ("pcie__read_bytes.sum.per_second", "pcie__write_bytes.sum.per_second")
_NVLINK = ("nvlrx__bytes.sum.per_second", "nvltx__bytes.sum.per_second")
_MEMORIES = (("peer", "another GPU's memory", (_PCIE, _NVLINK)), ("sysmem", "the host's memory", (_PCIE,)))

COMPRESSED = "lts__gcomp_input_sectors.sum"
COMPRESSION = "lts__average_gcomp_input_sector_success_rate.pct"
SECTORS = "lts__t_sectors.sum"
WRITTEN = "l1tex__m_l1tex2xbar_write_bytes.sum"
DRAM_READ = "dram__bytes_read.sum.pct_of_peak_sustained_elapsed"
_SECTOR = 32
_COMPRESSES = (8.0, 9.0)
"""from, and before which compute capability the rule speaks of compression"""


def aperture_usage(facts: Facts) -> Iterator[Message]:
    """Gain: the part of the misses that go there, times how much slower that way was than DRAM, where both were counted."""
    used, misses = facts.get(TEX, 0.0), facts.get(MISSES, 0.0)
    if used <= limits.L2_BUSY.value or misses <= 0:
        return
    for name, where, ways in _MEMORIES:
        there = next((facts[key.format(name)] for key in _APERTURE if key.format(name) in facts), 0.0)
        share = min(there / misses, 1.0)
        if 100 * share <= limits.APERTURE_MISSES.value:
            continue
        way = max(sum(facts.get(rate, 0.0) for rate in rates) for rates in ways)
        dram = facts.get(_DRAM, 0.0)
        gain = 100 * share * (1 - way / dram) if 0 < way < dram else float("nan")
        text = f"{100 * share:.1f} % of what missed the L2 cache came from {where}, by PCIe or NVLink: much slower than the GPU's own."
        yield messages("MemoryApertureUsage", "MemoryWorkloadAnalysis_Chart")("OPT", text, gain)


def l2_compression(facts: Facts) -> Iterator[Message]:
    """Gain as the rule documents it: what was not compressed, of the sectors that were not even tried, at the use of DRAM. (The rule's
    own source takes the rate, which is in percent, for a fraction; here it is one.)"""
    first, end = _COMPRESSES
    tried, rate = facts.get(COMPRESSED, 0.0), facts.get(COMPRESSION)
    if not first <= facts.get(CAPABILITY, 0.0) < end or tried <= 0 or rate is None:
        return
    say = messages("MemoryL2Compression", "MemoryWorkloadAnalysis_Chart")
    sectors = facts.get(SECTORS, 0.0)
    gain = (
        (1 - rate / 100) * (1 - min(tried / sectors, 1.0)) * facts.get(DRAM_READ, 0.0) if sectors > 0 else float("nan")
    )
    if rate < limits.COMPRESSION_LOW.value:
        yield say("OPT", f"Of {tried * _SECTOR:.0f} bytes that L2 tried to compress {rate:.2f} % could be: mark memory as compressible "
                         "only where it is mostly zeros or alike.", gain)  # fmt: skip
    written = facts.get(WRITTEN, 0.0)
    if written > 0 and tried * _SECTOR > limits.COMPRESSION_TRAFFIC.value * written:
        yield say("OPT", f"Writes to compressible memory send {tried * _SECTOR / written:.1f} times their bytes to the compression unit: "
                         "they touch many lines of L2 and little of each.", gain)  # fmt: skip
