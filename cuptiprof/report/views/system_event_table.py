"""What befell the GPUs: what held their clocks, XIDs and errors of memory, with the steps and regions in which it did."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof.analysis.training_steps.step_clocks import steps_of
from cuptiprof.analysis.training_steps.step_spans import StepSpans, gpu_steps, host_steps
from cuptiprof.analysis.utilization.system_events import SystemEvent, system_events
from cuptiprof.analysis.work.counted import device_label, device_labels
from cuptiprof.analysis.work.gpu_work import origin_ns
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Table
from cuptiprof.report.model import Column, View, left_out

_COLUMNS = (
    Column("start_ns", "Start", "instant"),
    Column("duration_ns", "Duration", "duration"),
    Column("device", "Device", "label", rank=3),
    Column("device_ordinal", "Device", "count", human=False),
    Column("event", "Event", "label"),
    Column("detail", "Detail", "text", rank=1),
    Column("value", "Value", "metric", human=False),
    Column("steps", "Steps", "label", may_cut=True),
    Column("region", "Region", "text", rank=2),
)
_NOT_READ = "no readings of the system were recorded: profile(system=True), cuptiprof run --system-profiling on"
_NONE = "nothing held the clocks of a GPU, and there was no XID and no error of memory"
_LEGEND = "Seen in readings of the system: times are no finer than their interval. Region: the one whose kernels ran longest meanwhile."


def view(result: Result, *, demangle: bool = True, limit: int | None = None) -> View:
    """One row an event, by time."""
    del demangle
    events = system_events(result)
    steps = gpu_steps(result) if events and len(host_steps(result)) else StepSpans([], *[np.zeros(0, np.int64)] * 2)
    ran = _Ran(result.kernels) if events else None
    labels, origin = device_labels(result), origin_ns(result)
    data: dict[str, list[Any]] = {c.key: [] for c in _COLUMNS}
    for event in events[:limit]:
        cells = (
            event.start - origin, event.end - event.start, device_label(labels, event.device), event.device, event.kind, event.text(), event.value,
            _steps(steps, event), ran.region(event) if ran else "",
        )  # fmt: skip
        for column, cell in zip(_COLUMNS, cells, strict=True):
            data[column.key].append(cell)
    footers = (*left_out(len(events), len(data["event"]), "events"), *((_LEGEND,) if events else ()))
    return View(
        columns=_COLUMNS,
        data=data,
        footers=footers,
        notes={"": _NONE if len(result.system_samples) else _NOT_READ},
        facts={"events": len(events), "origin_ns": origin},
    )


def _steps(steps: StepSpans, event: SystemEvent) -> str:
    """ "3" or "3 to 7"; empty: none."""
    inside = steps_of(event, steps)
    if not len(inside):
        return ""
    first, last = steps.name[int(inside[0])], steps.name[int(inside[-1])]
    return first if first == last else f"{first} to {last}"


class _Ran:
    """The kernels, by start."""

    def __init__(self, kernels: Table) -> None:
        if (kernels["start"][1:] < kernels["start"][:-1]).any():
            kernels = kernels.where(np.argsort(kernels["start"], kind="stable"))
        self._kernels = kernels
        self._ended = np.maximum.accumulate(kernels["end"])

    def region(self, event: SystemEvent) -> str:
        """Where most of the time of those was launched that ran meanwhile; empty: none did, or in no region."""
        kernels, until = self._kernels, event.until
        rows = slice(
            *(int(np.searchsorted(*where)) for where in ((self._ended, event.start), (kernels["start"], until)))
        )
        took = np.minimum(kernels["end"][rows], until) - np.maximum(kernels["start"][rows], event.start)
        inside = np.flatnonzero((took > 0) & (kernels["device"][rows] == event.device))
        if not len(inside):
            return ""
        codes, which = np.unique(kernels.codes("region")[rows][inside], return_inverse=True)
        return str(kernels.strings[int(codes[np.argmax(np.bincount(which, took[inside]))])])
