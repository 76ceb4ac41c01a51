"""The counters of one running session: its plan, and what each result gets of them."""

from __future__ import annotations

import sys
from typing import Any

import msgspec.structs
import numpy as np

from cuptiprof import _core
from cuptiprof.counters.collect import make_tables
from cuptiprof.counters.plan import CounterPlan, make_plan
from cuptiprof.counters.request import CounterRequest
from cuptiprof.counters.sampled import join
from cuptiprof.data.tables import Table
from cuptiprof.device.devices import Device
from cuptiprof.errors import MetricError
from cuptiprof.filter.kernel_filter import KernelFilter

EVENTS: dict[str, str] = dict(_core.COUNTER_EVENTS)
"""Reason -> what it counts, of ``metadata["counters"]["events"]``."""

_NOT_UNCOUNTED = ("nested", "differing", "overflows", "not_run")
"""Events that leave nothing without values that was to have some."""


class CounterWarning(UserWarning):
    """Counters were asked for, and some or all could not be had."""


class LiveCounters:
    """Python's side of a session's counters: made when the session starts, asked for each of its results.

    Its session calls it from one control call at a time.

    Args:
        stepped: the program calls ``step()``, so that "auto" may spread passes over steps.
        explain: print the plan to stderr.

    Raises:
        MetricError: what :func:`~cuptiprof.counters.plan.make_plan` refuses, or a filter that the strategy has no use for.
    """

    def __init__(
        self,
        request: CounterRequest,
        device: Device,
        kernel_filter: KernelFilter | None,
        *,
        stepped: bool,
        explain: bool,
    ) -> None:
        if request.strategy in ("range", "sample") and kernel_filter is not None and kernel_filter.name_patterns:
            raise MetricError(
                f"strategy {request.strategy!r} does not look at kernels, so kernels= selects nothing",
                hint="regions= for range; none for sample: every kernel gets what was sampled while it ran",
            )
        chip = _core.chip_name(device.library, _core.device_in_use(device.library))
        self.plan: CounterPlan = make_plan(request, device.library, chip, stepped=stepped)
        self.simulated = device.simulated
        self.counts: dict[str, Any] = {}  # up to the last result
        self._counts_now: dict[str, Any] = {}
        if explain:
            print(self.plan.explain(), file=sys.stderr)

    def kept(self) -> None:
        """The result is finished: the next one begins here."""
        self.counts = self._counts_now

    def add_to(
        self, session: _core.Session, tables: dict[str, Table], metadata: dict[str, Any], warned: list[Warning]
    ) -> dict[str, int]:
        """Put what was measured since the last result into its tables and metadata; returns the losses.

        May be done again, until ``kept()``.

        Args:
            warned: gets a :class:`CounterWarning` when CUPTI refused, or nothing was selected.
        """
        rows = session.take_counters()
        assert rows is not None
        strings = next(iter(tables.values())).strings
        tables.update(make_tables(self.plan, rows, session.counter_text, strings))
        if self.plan.strategy == "sample":
            tables["metric_ranges"], tables["metrics"] = join(
                self.plan.metrics, tables["metric_ranges"], tables["metrics"], _with_configs(tables)
            )
        total = session.counter_counts()
        counts = {k: total[k] - self.counts.get(k, 0) for k in EVENTS}
        selected = total["selected"] - self.counts.get("selected", 0)
        self._counts_now = dict(total)
        notes = self._notes(total, tables)
        record = self.plan.record()
        metadata["counters"] = msgspec.structs.replace(
            record,
            clock_control=record.clock_control if total["clocks_held"] else "none",
            simulated=self.simulated,
            events={k: v for k, v in counts.items() if v},
            names_judged=total["names_judged"],
            notes=notes,
        ).metadata()
        warned += self._warnings(total, selected, len(rows["start"]), metadata["counters"])
        return {
            "uncounted": sum(v for k, v in counts.items() if k not in _NOT_UNCOUNTED),
            "sample_overflows": counts["overflows"],
        }

    def _notes(self, total: dict[str, Any], tables: dict[str, Table]) -> list[str]:
        notes = []
        strategy = self.plan.strategy
        if strategy == "replay" and self.plan.passes > 1:
            notes.append(f"selected kernels ran {self.plan.passes} times, alone: their times are those of replays")
        elif strategy in ("replay", "iterate"):
            notes.append("selected kernels ran alone, not beside others")
        elif strategy == "range":
            notes.append("times of measured regions include the profiler's own work; take times from an unmeasured run")
            if timed := self.plan.over_the_regions_time:
                notes.append(
                    "a region is counted from its entry to its exit, while the GPU waits for the host too: "
                    f"{', '.join(timed)} {'is' if len(timed) == 1 else 'are'} over all of that time"
                )
        elif strategy == "sample":
            notes.append("samples cover the whole device, work of other processes included")
        notes += self.plan.controls.notes(
            strategy,
            self.plan.passes,
            held=total["clocks_held"],
            others=total["clocks_of_others"],
            error=total["clocks_error"],
        )
        if total["other_chip"]:
            notes.append(
                f"{total['other_chip']} launches or regions ran on another chip than {self.plan.chip}, for which the "
                "metrics were planned, and were not counted"
            )
        if total["communicating"]:
            notes.append(
                f"{total['communicating']} kernels that wait for other GPUs were left out (communicating=True counts them)"
            )
        if strategy == "iterate":
            ranges = tables["metric_ranges"]
            short = int(np.sum(ranges["passes"] < len(self.plan.groups)))
            if short:
                notes.append(
                    f"{short} of {len(ranges)} kernels were not met in every pass group: metrics of the others are missing"
                )
        if total["differing"]:
            notes.append(f"{total['differing']} times a repeated run had other regions than the first")
        if total["nested"]:
            notes.append(f"{total['nested']} regions inside a measured one were not measured (region_levels=)")
        return notes

    def _warnings(
        self, total: dict[str, Any], selected: int, measured: int, metadata: dict[str, Any]
    ) -> list[CounterWarning]:
        if total["error"]:
            name, what, hint = _core.error_text(total["error"])
            text = f"{total['error_call']} returned {name}: {what or 'counters could not be read'}. {hint}".strip()
        elif measured == 0 and selected == 0 and self.plan.strategy in ("replay", "iterate"):
            text = "no kernel was selected for counters: none matched the filter, or none was launched"
        elif measured == 0 and self.plan.strategy == "range":
            text = "no region was measured: none matched regions=, or none was entered after a kernel or allocation"
        elif measured == 0 and total["overflows"]:
            text = "no sample came: the hardware buffer overflowed each time; take a longer interval or fewer metrics"
        elif measured == 0 and self.plan.strategy == "sample":
            text = "no sample came: the run was shorter than a few sampling intervals"
        else:
            return []
        metadata["notes"].append(text)
        return [CounterWarning(text)]


def _with_configs(tables: dict[str, Table]) -> Table:
    """The kernels, with their grids and blocks."""
    kernels = tables["kernels"]
    kernels.configs = tables["launch_configs"]
    return kernels
