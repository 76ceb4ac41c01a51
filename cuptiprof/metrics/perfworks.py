"""Perfworks names: ``unit__quantity_qualifiers.rollup[.submetric]``, what they need and what they measure.

A base name ("sm__warps_active") is no number yet: a counter is rolled up over the units of the chip (.sum .avg .min
.max), a ratio is .ratio, .pct or .max_rate, a throughput is a percentage of peak. PM sampling also has names with the
unit's sampling group in front: ``LTS.TriageCompute.lts__throughput.avg.pct_of_peak_sustained_elapsed``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["count", "ratio", "percent", "throughput", "rate", "utilization"]
"""What a value is, which says how it is shown.

count        a whole number of things                ratio        any other number, per cycle, per request, 0..1
percent      0..100                                  throughput   byte/s
rate         other things a second                   utilization  nvprof's level 0..10
"""

_PEAK = r"peak_sustained(?:_(?:active|elapsed|region|frame)(?:\.per_second)?)?"
_SUFFIX = rf"(?:\.(?:{_PEAK}|pct_of_peak_sustained_\w+|per_second|per_(?:cycle|region|frame)_?\w*))?"
_NAME = re.compile(
    r"(?:(?:[A-Z][A-Z0-9_]*\.)?Triage[A-Za-z0-9]+\.)?"
    r"(?P<base>[a-z][a-z0-9]*__[A-Za-z0-9_]+)"
    rf"(?P<rollup>\.(?:(?:sum|avg|min|max){_SUFFIX}|ratio|pct|max_rate))?",
    re.ASCII,
)
MAX_NAME = 300

COUNTER_ROLLUPS = (".sum", ".avg", ".min", ".max")
RATIO_ROLLUPS = (".ratio", ".pct", ".max_rate")
THROUGHPUT_ROLLUPS = (".avg.pct_of_peak_sustained_elapsed", ".avg.pct_of_peak_sustained_active")

# Words of a base name, first match wins, and the unit of what is counted.
_QUANTITIES = (
    ("time_duration", "ns"),
    ("bytes", "byte"),
    ("sectors", "sector"),
    ("wavefronts", "wavefront"),
    ("requests", "request"),
    ("thread_inst", "thread instruction"),
    ("inst_", "instruction"),
    ("ops_path", "op"),
    ("ctas_", "block"),
    ("cycles", "cycle"),
    ("warps_", "warp"),
)


@dataclass(frozen=True)
class PerfworksName:
    """A perfworks name in its parts.

    Attributes:
        base: without sampling group and roll-up.
        rollup: ".sum", ".avg.per_second", ...; empty for a base name.
    """

    base: str
    rollup: str

    @property
    def rollups(self) -> tuple[str, ...]:
        """The roll-ups that make a number of the base name, as far as the name tells its type."""
        if "throughput" in self.base:
            return THROUGHPUT_ROLLUPS
        if re.search(r"__average_|_rate(_|$)|_per_|__amortized", self.base):
            return RATIO_ROLLUPS
        return COUNTER_ROLLUPS

    @property
    def unit(self) -> str:
        """Unit of the value as far as the name tells it; empty if it does not."""
        if "pct" in self.rollup:
            return "%"
        if self.rollup in (".ratio", ".max_rate"):
            return "ratio"
        what = next((unit for word, unit in _QUANTITIES if word in self.base), "")
        if self.rollup.endswith(".per_second"):
            return f"{what}/s"
        if ".per_cycle" in self.rollup or ".peak_sustained" in self.rollup:
            return f"{what}/cycle"
        return what


def split_name(name: str) -> PerfworksName | None:
    """``name`` in its parts; None if it is not formed like a perfworks name."""
    match = _NAME.fullmatch(name) if len(name) <= MAX_NAME else None
    return PerfworksName(match.group("base"), match.group("rollup") or "") if match else None


def is_sampling_name(name: str) -> bool:
    """Whether a name has the sampling group of its unit in front."""
    return "Triage" in name.partition("__")[0]


def plain_unit(unit: str) -> str:
    """A unit as libcupti writes it ("byte/second", "percent") as this package writes it.

    Products are written without a sign there: "gpc_cyclewarp/gpc_cycle" is warps.
    """
    above, _, below = unit.partition("/")
    if below and above != below and above.startswith(below):
        return above.removeprefix(below)
    return unit.replace("percent", "%").replace("/second", "/s").replace("nanosecond", "ns")


def kind_of(rollup: str, unit: str) -> Kind:
    """The kind of a perfworks value from its roll-up and unit."""
    if unit == "%":
        return "percent"
    if unit == "byte/s":
        return "throughput"
    if unit.endswith("/s"):
        return "rate"
    return "count" if rollup in (".sum", ".min", ".max") else "ratio"
