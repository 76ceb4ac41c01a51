"""What a session collected: tables, where they come from, and what was lost."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cuptiprof import _core
from cuptiprof.data.host_samples import HostSamples
from cuptiprof.data.python_stacks import PythonStacks
from cuptiprof.data.tables import Array, Strings, Table, schema
from cuptiprof.errors import ResultError
from cuptiprof.stats.verdict import THRESHOLD
from cuptiprof.text.html import html_line, html_table

if TYPE_CHECKING:
    from cuptiprof.analysis.comparison.work_groups import WorkBy
    from cuptiprof.analysis.counter_values.kernel_counters import Counters
    from cuptiprof.analysis.trees.flame import StackBy
    from cuptiprof.filter.kernel_filter import KernelFilter
    from cuptiprof.pictures.picture import Picture
    from cuptiprof.report.model import Report
    from cuptiprof.report.views.key_averages import KeyAverages

Progress = Callable[[int, int], None]
"""Called with (done, total) during long work."""


class Losses(Mapping[str, int]):
    """Every way to lose data and how often it happened; see ``describe()``."""

    DOCS: Mapping[str, str] = dict(_core.LOSSES)
    NOT_A_LOSS = frozenset({"filter_rejected", "earlier_session", "foreign_buffers", "metadata_as_text"})

    def __init__(self, values: Mapping[str, int] | None = None) -> None:
        self._values = dict.fromkeys(self.DOCS, 0)
        for name, value in (values or {}).items():
            if name not in self._values:
                raise ResultError(f"unknown loss counter {name!r}")
            self._values[name] = int(value)

    def __getitem__(self, name: str) -> int:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __bool__(self) -> bool:
        """True when anything was lost."""
        return any(v for k, v in self._values.items() if k not in self.NOT_A_LOSS)

    def line(self) -> str:
        """One sentence for the end of a report; empty when nothing was lost."""
        parts = [f"{v:,} {k}" for k, v in self._values.items() if v and k not in self.NOT_A_LOSS]
        return "Lost: " + ", ".join(parts) if parts else ""

    def __repr__(self) -> str:
        return f"<cuptiprof.Losses: {self.line() or 'nothing was lost'}>"

    def _repr_html_(self) -> str:
        counted = {name: value for name, value in self._values.items() if value}
        if not counted:
            return html_line("Nothing was lost.")
        rows = [[name, f"{value:,}", self.DOCS[name]] for name, value in counted.items()]
        return html_table(["counter", "count", "what"], rows, [True, False, True])

    def describe(self) -> dict[str, str]:
        """Counter name -> what it counts."""
        return dict(self.DOCS)


class Result:
    """An immutable set of tables (one attribute each: ``kernels``, ``memcpys``, ``memsets``, ``api_calls``,
    ``synchronizations``, ``cuda_events``, ``memory``, ``memory_pools``, ``allocator_events``, ``allocator_blocks``, ``collectives``, ``system_samples``, ``overhead``, ``graph_launches``, ``contexts``,
    ``streams``, ``devices``, ``regions``, ``operators``, ``markers``, ``stacks``, ``metric_ranges``, ``metrics``, ``launch_configs``), with `metadata` and `losses`.

    Times are in ns on the run clock (``clock_to_unix`` converts). `host_samples` is what ``with_host_samples`` put beside the run;
    it is not saved with it.
    """

    kernels: Table
    launch_configs: Table
    memcpys: Table
    memsets: Table
    api_calls: Table
    synchronizations: Table
    cuda_events: Table
    memory: Table
    memory_pools: Table
    allocator_events: Table
    allocator_blocks: Table
    collectives: Table
    system_samples: Table
    overhead: Table
    graph_launches: Table
    contexts: Table
    streams: Table
    devices: Table
    regions: Table
    operators: Table
    markers: Table
    stacks: Table
    metric_ranges: Table
    metrics: Table

    def __init__(
        self,
        tables: Mapping[str, Table],
        metadata: Mapping[str, Any] | None = None,
        losses: Mapping[str, int] | None = None,
        host_samples: HostSamples | None = None,
    ) -> None:
        strings = next(iter(tables.values())).strings if tables else Strings()
        self.tables: dict[str, Table] = {n: tables[n] if n in tables else Table.empty(n, strings) for n in schema()}
        # Ours, with the same columns: what it refers to is of this result, and the one that was given may be of another.
        kernels = self.tables["kernels"] = copy.copy(self.tables["kernels"])
        for name, own in (("launch_configs", kernels.configs), ("stacks", kernels.stacks)):
            if name not in tables and own is not None:
                self.tables[name] = own
        kernels.configs, kernels.stacks = self.tables["launch_configs"], self.tables["stacks"]
        self.metadata: dict[str, Any] = dict(metadata or {})
        self.losses = Losses(losses)
        self.host_samples = host_samples
        for name, table in self.tables.items():
            setattr(self, name, table)
        self._counters: Counters | None = None
        if len(self.tables["metric_ranges"]):
            self.tables["kernels"].counters = self.counters

    @property
    def counters(self) -> Counters:
        """Hardware counters by name: ``result.counters["ipc"]`` has one float64 a row of ``metric_ranges``, NaN where missing.

        ``result.kernels["ipc"]`` is the same joined to kernels.
        """
        if self._counters is None:
            from cuptiprof.analysis.counter_values.kernel_counters import Counters

            self._counters = Counters(self.tables["metric_ranges"], self.tables["metrics"], self.metadata)
        return self._counters

    def python_stacks(self) -> PythonStacks:
        """The Python stacks of a run with the source "stacks" or "lines":
        ``result.python_stacks().frames(result.kernels["stack"][0])`` is where the first kernel was launched."""
        return PythonStacks(self.tables["stacks"])

    def __repr__(self) -> str:
        n = {
            t: len(self.tables[t])
            for t in ("kernels", "memcpys", "memsets", "api_calls", "regions", "allocator_events")
        }
        counts = ", ".join(f"{v:,} {k}" for k, v in n.items() if v)
        return f"<cuptiprof.Result{' (simulated)' if self.simulated else ''}: {counts or 'empty'}>"

    def _repr_html_(self) -> str:
        rows = [[f"result.{name}", f"{len(table):,}"] for name, table in self.tables.items() if len(table)]
        return self.report("overview")._repr_html_() + html_table(["table", "rows"], rows, [True, False])

    @property
    def simulated(self) -> bool:
        """True when it was made on the simulated device."""
        return bool(self.metadata.get("simulated"))

    def clock_to_unix(self, ns: int) -> int:
        """Unix time in ns of a run clock time, by the nearest recorded pair of clocks.

        Raises:
            ResultError: the run has no clock pairs.
        """
        pairs = self.metadata.get("clock_pairs") or []
        if not pairs:
            raise ResultError("this run has no clock pairs")
        run, unix = min(pairs, key=lambda p: abs(p[0] - ns))
        return int(unix + ns - run)

    def with_kernels(self, mask: Array) -> Result:
        """The same run with only the kernels that `mask` selects."""
        return Result(
            {**self.tables, "kernels": self.kernels.where(mask)}, self.metadata, self.losses, self.host_samples
        )

    def timed(self) -> Result:
        """The same run without the GPU work that CUPTI had no times for (start and end 0): what sums of time and traces
        are made of."""
        timed = {name: self.tables[name].timed() for name in ("kernels", "memcpys", "memsets", "graph_launches")}
        if all(table is self.tables[name] for name, table in timed.items()):
            return self
        return Result({**self.tables, **timed}, self.metadata, self.losses, self.host_samples)

    def filter(self, kernels: KernelFilter | str) -> Result:
        """The same run with only the kernels that the filter selects (skip and count in launch order).

        Raises:
            FilterError: the filter cannot be understood.
        """
        from cuptiprof.filter.kernel_filter import KernelFilter

        chosen = kernels if isinstance(kernels, KernelFilter) else KernelFilter(kernels)
        mask = chosen.mask(self.kernels)
        losses = {**self.losses, "filter_rejected": self.losses["filter_rejected"] + int((~mask).sum())}
        return Result({**self.tables, "kernels": self.kernels.where(mask)}, self.metadata, losses, self.host_samples)

    def with_host_samples(self, path: str | os.PathLike[str]) -> Result:
        """The same run with samples of the host beside it, for the view "host", the timeline and the traces; ``docs/host-samples.md``.

        Args:
            path: a file that ``perf script`` printed, of a ``perf record -k CLOCK_MONOTONIC`` beside the run.

        Raises:
            ResultError: it cannot be read, or has no sample.
        """
        from cuptiprof.io.perf_script import read_perf_script

        return Result(self.tables, self.metadata, self.losses, read_perf_script(path))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False, progress: Progress | None = None) -> None:
        """Write the run as a folder of Parquet files; see ``docs/files.md``.

        Raises:
            ResultError: it exists, or cannot be written.
        """
        from cuptiprof.io.run_writer import save_run

        save_run(self, path, overwrite=overwrite, progress=progress)

    def save_rank(
        self, folder: str | os.PathLike[str], *, overwrite: bool = False, progress: Progress | None = None
    ) -> Path | str:
        """Write the run of this rank into the folder of its job (a path, or an address: ``s3://bucket/job``), as ``rank-N.cuptiprof``; every rank calls it with the same folder.
        ``cuptiprof.open_job`` opens them together; see ``docs/job.md``.

        Returns:
            Where the run lies: a path, or an address.

        Raises:
            ResultError: the process was no rank of a job, the rank has a run there, or it cannot be written.
        """
        from cuptiprof.io.rank_place import save_rank

        return save_rank(self, folder, overwrite=overwrite, progress=progress)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        by: StackBy | None = None,
        table: str | None = None,
        overwrite: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """Write another tool's format, chosen by the file's suffix or `format`.

        Args:
            by: what the stacks of flame graphs and pprof are of: "python", "region", "module" or "operator"; None: Python's stacks
                where the run has any, else regions.
            table: which table is written as Parquet, Arrow or CSV; None: kernels.

        Raises:
            ResultError: an unknown format, one without stacks or of no single table although `by` or `table` is given, no such table, it exists and `overwrite` is false, or it cannot be written.
        """
        from cuptiprof.export.formats import export

        export(self, path, format=format, by=by, table=table, overwrite=overwrite, progress=progress)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """``export(path, format="chrome", overwrite=True)``: by torch.profiler's name, and as there a file is replaced."""
        self.export(path, format="chrome", overwrite=True)

    def report(self, view: str = "overview", **options: Any) -> Report:
        """A view of the result; print it, or ``.to("markdown")``.

        Args:
            view: a name of ``cuptiprof.report.views.VIEWS``, as of ``cuptiprof report --view``.

        Raises:
            ResultError: an unknown view.
        """
        from cuptiprof.report import make_report

        return make_report(self, view, **options)

    def diff(
        self,
        new: Result,
        by: WorkBy = "kernel",
        *,
        short_names: bool = False,
        threshold: float = THRESHOLD,
        across_chips: bool = False,
        demangle: bool = True,
        **options: Any,
    ) -> Report:
        """What is different in another run, of which this one is the base: launches, time, share, counters, what is new and what is gone, and
        which differences are certain; see ``docs/diff.md``.

        Args:
            new: the run to compare with this one.
            by: "kernel", "region", "operator", "module" or "step".
            short_names: kernels that differ by template arguments, parameters or addresses only are one.
            threshold: relative difference that does not matter.
            across_chips: judge also times of different GPUs, or of a GPU and a simulated one.
            options: ``units`` and ``limit``, as of ``report``; ``names``, of the two runs.

        Raises:
            ResultError: an unknown `by`, unit, or limit.
        """
        from cuptiprof.analysis.comparison.run_diff import diff_runs
        from cuptiprof.report import make_diff_report

        found = diff_runs(self, new, by, short_names=short_names, threshold=threshold, across_chips=across_chips, demangle=demangle)  # fmt: skip
        return make_diff_report(found, self, new, **options)

    def plot(self, kind: str = "timeline", **options: Any) -> Picture:
        """A static picture of the run, which a notebook shows; ``.svg`` is its text, ``.save("x.png")`` writes it. Needs matplotlib
        (``pip install 'cuptiprof[plot]'``).

        Args:
            kind: "timeline", "flame", "memory", "occupancy", "roofline", "steps" or "kernels".
            options: of "flame" ``by`` ("region", "module", "operator", "python"), of "roofline" ``level`` ("dram", "l2", "l1tex").

        Raises:
            ResultError: another kind, nothing of it was recorded, or matplotlib is not installed.
        """
        from cuptiprof.pictures.run_pictures import plot_run

        return plot_run(self, kind, **options)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Time by the Python stack of the operators that took it, a line a stack, for flame graphs: by torch.profiler's name and
        in its format, as there a file is replaced.

        Args:
            metric: "self_cpu_time_total" or "self_cuda_time_total" (or "self_device_time_total"), us.

        Raises:
            ResultError: another metric, no stacks in the run, or it cannot be written.
        """
        from cuptiprof.export.stack_file import export_stacks

        export_stacks(self.timed(), path, metric)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> KeyAverages:
        """torch.profiler's averages by name of operators, regions, steps, CUDA calls and GPU work; print
        ``.table(sort_by="self_cuda_time_total", row_limit=10)``.

        Args:
            group_by_input_shape: tell operators apart by the shapes of their inputs, where those were recorded.
            group_by_stack_n: tell operators apart by so many frames of the Python stack, the innermost first.
        """
        from cuptiprof.report.views.key_averages import key_averages

        return key_averages(self, group_by_input_shape, group_by_stack_n)

    def overview(self, **options: Any) -> Report:
        """Wall and step time, what the GPU did and why it was idle, the kernels and regions that took longest."""
        return self.report("overview", **options)

    def advise(self, **options: Any) -> Report:
        """What to try to make it faster: where, and how much time that can save at most."""
        return self.report("advise", **options)

    def summary(self, **options: Any) -> Report:
        """nvprof's summary: GPU activities and API calls."""
        return self.report("summary", **options)

    def gpu_trace(self, **options: Any) -> Report:
        """nvprof's --print-gpu-trace."""
        return self.report("gpu-trace", **options)

    def api_trace(self, **options: Any) -> Report:
        """nvprof's --print-api-trace."""
        return self.report("api-trace", **options)

    def metrics_table(self, wide: bool = True, **options: Any) -> Report:
        """Hardware counters: one row a launch, kernel or region and one column a metric, or with ``wide=False`` one row a value.

        Values are float64 in the unit of the metric (``report.content.facts["units"]``), NaN where missing.
        """
        return self.report("metrics-wide" if wide else "metrics-long", **options)

    def regions_report(self, **options: Any) -> Report:
        """The region tree with host and GPU time."""
        return self.report("regions", **options)


def from_native(tables: Mapping[str, Mapping[str, Array]], strings: list[str]) -> dict[str, Table]:
    """Tables over the arrays that the native library handed out, without copies."""
    shared = Strings(strings)
    out = {name: Table(name, columns, shared) for name, columns in tables.items()}
    out["kernels"].configs = out["launch_configs"]
    return out


def gpu_span(result: Result) -> tuple[int, int]:
    """Start of the first and end of the last GPU activity, ns; (0, 0) if there was none."""
    starts, ends = [], []
    for name in ("kernels", "memcpys", "memsets"):
        table = result.tables[name].timed()
        if len(table):
            starts.append(int(np.min(table["start"])))
            ends.append(int(np.max(table["end"])))
    return (min(starts), max(ends)) if starts else (0, 0)
