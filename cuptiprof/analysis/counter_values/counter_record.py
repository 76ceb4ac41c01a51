"""The plan of the hardware counters of a run: what a session writes into its metadata and a saved run says.

A saved run is a file somebody gave us: whatever its metadata says is checked here, once, so that views need not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from cuptiprof.data.checked import checked
from cuptiprof.errors import ResultError

_SHOWN = 3  # reasons why names were not counted, and names of each, in the header; a set of ncu has dozens


class MetricInfo(msgspec.Struct, frozen=True):
    """What the plan said of one metric; texts are empty where it said nothing. The category of nvprof's events is "event"."""

    name: str
    unit: str = ""
    description: str = ""
    expression: str = ""
    status: str = ""
    kind: str = ""
    value_kind: str = ""
    category: str = ""
    inputs: list[str] = []

    @property
    def adds_up(self) -> bool:
        """Whether values of several kernels can be added: a number of things, and no mean, ratio, minimum or maximum."""
        return self.value_kind == "count" and not self.name.endswith((".avg", ".min", ".max"))


Count = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]


class CounterRecord(msgspec.Struct, frozen=True):
    """``metadata["counters"]``: the plan, and what the run made of it.

    Attributes:
        groups: perfworks names that were read together.
        passes: how often the work ran, or would have to, for every value.
        events: what happened while counting, by reason.
        names_judged: distinct names of kernels that the filter was asked about.
    """

    strategy: str = ""
    chip: str = ""
    passes: Count | None = None
    metrics: list[MetricInfo] = []
    groups: list[list[str]] = []
    dropped: dict[str, str] = {}
    cache_control: str = "none"
    clock_control: str = "none"
    over_the_regions_time: list[str] = []
    sampling_interval_ns: Count | None = None
    simulated: bool = False
    events: dict[str, Count] = {}
    names_judged: Count = 0
    notes: list[str] = []

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> CounterRecord | None:
        """The plan of a run; None if it asked for no counters, or if the file holds something else there."""
        if "counters" not in metadata:
            return None
        try:
            return checked(metadata["counters"], cls, "metadata['counters']")
        except ResultError:
            return None

    def metadata(self) -> dict[str, Any]:
        """As plain values, which JSON can hold."""
        out: dict[str, Any] = msgspec.to_builtins(self)
        return out

    def lines(self, *, run_is_simulated: bool = False) -> tuple[str, ...]:
        """What every report of the run says in its header."""
        parts = []
        if self.strategy:
            parts.append(f"strategy {self.strategy}")
        if self.chip:
            parts.append(f"chip {self.chip}")
        if self.passes:
            parts.append(f"{self.passes} {'pass' if self.passes == 1 else 'passes'}")
        if self.sampling_interval_ns:
            parts.append(f"a sample every {self.sampling_interval_ns / 1000:g} us")
        lines = [f"Counters: {', '.join(parts)}"] if parts else []
        if self.simulated and not run_is_simulated:
            lines.insert(0, "SIMULATED counters: not measured on a GPU")
        lines += [f"Counters: {note}" for note in self.notes]
        by_reason: dict[str, list[str]] = {}
        for name, why in self.dropped.items():
            by_reason.setdefault(why, []).append(name)
        if len(by_reason) > _SHOWN:
            lines.append(f"Counters: {len(self.dropped)} names were left out: metadata['counters']['dropped'] says why")
        else:
            lines += [f"Counters: {_listed(names)} left out: {why}" for why, names in by_reason.items()]
        return tuple(lines)


def _listed(names: list[str]) -> str:
    if len(names) == 1:
        return f"{names[0]} was"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more} were"
