"""Results as JSON lines: one for each run with its environment, one for each point, written as soon as it is measured.

A point of a file is what was measured last of it; where several processes have measured it, what each has measured last, pooled.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from cuptiprof.bench.plots.histogram import plot_histograms
from cuptiprof.bench.plots.over_parameter import plot_over
from cuptiprof.bench.plots.roofline_plot import plot_roofline
from cuptiprof.bench.results.processes import pool_rows
from cuptiprof.bench.results.results_table import results_report
from cuptiprof.bench.results.row import Row
from cuptiprof.bench.results.sweep_page import write_page
from cuptiprof.errors import ResultError
from cuptiprof.report.model import Report
from cuptiprof.version import __version__

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1
PROGRAM = "cuptiprof bench"
MAX_LINE = 256 << 20  # bytes: ten million samples
MAX_FILE = 4 << 30
MAX_LINES = 1_000_000
MAX_PROCESSES = 10_000

Path_ = str | os.PathLike[str]


@dataclass(frozen=True)
class Results:
    """The points of a file or of a sweep, each once: what was measured last.

    Attributes:
        rows: in the order of measuring.
        environment: of the last run.
        notes: what a reader must know of the file.
    """

    rows: tuple[Row, ...]
    environment: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def report(self, *, units: str = "auto") -> Report:
        """The table; ``print`` it, or ``.to("markdown")``. See :func:`cuptiprof.bench.results.results_table.results_report`."""
        return results_report(self.rows, self.environment, self.notes, units=units)

    def to_pandas(self) -> pd.DataFrame:
        """The table as a pandas DataFrame: a row a point, ns, with the columns of CSV and JSON.

        Raises:
            ResultError: pandas is not installed.
        """
        return self.report().to_pandas()

    def plot(self, path: Path_, x: str, y: str = "time") -> None:
        """Draw times over parameter `x`, or "flops" or "bytes" per s under their roofs: :func:`cuptiprof.bench.plots.over_parameter.plot_over`."""
        plot_over(self.rows, self.environment, path, x, y)

    def save_html(self, path: Path_, *, against: Report | None = None) -> None:
        """Write a page of the tables and pictures, one file: :func:`cuptiprof.bench.results.sweep_page.write_page`.

        Args:
            against: the table of verdicts against a baseline.
        """
        write_page(Path(path), [r for r in (self.report(), against) if r], self.rows, self.environment)

    def plot_histograms(self, path: Path_) -> None:
        """Draw the samples of each point: :func:`cuptiprof.bench.plots.histogram.plot_histograms`."""
        plot_histograms(self.rows, self.environment, path)

    def plot_roofline(self, path: Path_) -> None:
        """Draw the points under the roofs of their chip: :func:`cuptiprof.bench.plots.roofline_plot.plot_roofline`."""
        plot_roofline(self.rows, self.environment, path)

    def __str__(self) -> str:
        return str(self.report())

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()


class ResultsWriter:
    """Appends to a results file; each line is on disk when ``add`` returns. Use as a context manager."""

    def __init__(
        self, path: Path_, environment: Mapping[str, Any], *, resume: bool = False, overwrite: bool = False
    ) -> None:
        """Create `path`, or go on with it, and write the line of this run.

        Args:
            environment: see :func:`cuptiprof.bench.environment.environment`.

        Raises:
            ResultError: it exists and is neither to be gone on with nor replaced, is not a results file, is being written by
                another program, or cannot be written.
        """
        self.path = Path(path)
        self.notes: tuple[str, ...] = ()
        if os.path.lexists(self.path) and (not self.path.is_file() or self.path.stat().st_size > 0):
            if not (resume or overwrite):
                raise ResultError(f"{self.path} exists", hint="--resume goes on with it; -f replaces it")
            self.notes = next(iter(read_processes(self.path).values())).notes  # refuses what is not ours
        try:
            self._file: IO[bytes] = open(self.path, "ab", buffering=0)  # noqa: SIM115  closed by close()
            self._lock()
            self._file.truncate(0 if overwrite else self._end_of_last_line())
        except OSError as e:
            raise ResultError(f"cannot write {self.path}: {e.strerror}") from None
        self.begin_run(environment)

    def __enter__(self) -> ResultsWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin_run(self, environment: Mapping[str, Any], process: int = 1) -> None:
        """Write what the points from here on have in common.

        Args:
            process: number of the process that measures them, of those that measure the same points.

        Raises:
            ResultError: the disk is full or gone.
        """
        self._environment = dict(environment)
        head = {"kind": "run", "format": FORMAT, "program": PROGRAM, "version": __version__, "process": process}
        self._line({**head, "environment": self._environment})

    def add(self, row: Row) -> None:
        """Append a row.

        Raises:
            ResultError: the disk is full or gone.
        """
        line = row.to_dict()
        if row.measurement is not None:
            # What the run's own line says already is left out.
            own = line["measurement"]["environment"]
            line["measurement"]["environment"] = {k: v for k, v in own.items() if self._environment.get(k) != v}
        self._line(line)

    def close(self) -> None:
        self._file.close()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise ResultError(f"{self.path} is being written by another program") from None

    def _end_of_last_line(self) -> int:
        """What a killed program left behind it is to be dropped."""
        with open(self.path, "rb") as f:
            keep = f.seek(0, os.SEEK_END)
            while keep > 0:
                start = max(0, keep - 65_536)
                f.seek(start)
                at = f.read(keep - start).rfind(b"\n")
                if at >= 0:
                    return start + at + 1
                keep = start
        return 0

    def _line(self, line: Mapping[str, Any]) -> None:
        data = json.dumps(line, allow_nan=False, default=str).encode() + b"\n"
        before = os.fstat(self._file.fileno()).st_size
        try:
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as e:
            self._file.truncate(before)  # the lines so far are good
            raise ResultError(f"cannot write {self.path}: {e.strerror}", hint="is the disk full?") from None


def pool(results: Sequence[Results]) -> Results:
    """The results of several processes as one, see :func:`cuptiprof.bench.results.processes.pool_rows`.

    Raises:
        ResultError: a point was measured differently, or on another chip.
    """
    if len(results) == 1:
        return results[0]
    notes = tuple(dict.fromkeys(note for r in results for note in r.notes))
    return Results(pool_rows(r.rows for r in results), results[0].environment, notes)


def read_results(path: Path_) -> Results:
    """Read a results file; nothing in it is trusted. Several processes are pooled.

    Raises:
        ResultError: it cannot be read, is of another format, or is damaged elsewhere than in its last line.
    """
    return pool(tuple(read_processes(path).values()))


def read_processes(path: Path_) -> dict[int, Results]:
    """Read a results file: number of each process -> what it has measured.

    Raises:
        ResultError: as :func:`read_results`.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as f:
            info = os.fstat(f.fileno())
            if not stat.S_ISREG(info.st_mode):
                raise ResultError(f"{path} is no file")
            if info.st_size > MAX_FILE:
                raise ResultError(f"{path} has {info.st_size:,} bytes", hint=f"at most {MAX_FILE:,} are read")
            return _read(f, path)
    except OSError as e:
        raise ResultError(f"cannot read {path}: {e.strerror}") from None


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a named pipe would keep us waiting for its writer


def _read(f: IO[bytes], path: Path_) -> dict[int, Results]:
    processes: dict[int, dict[tuple[str, str], Row]] = {}
    environments: dict[int, Mapping[str, Any]] = {}
    environment: Mapping[str, Any] | None = None
    notes: list[str] = []
    number = 0
    while line := f.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE or number > MAX_LINES:
            raise ResultError(f"{path}, line {number}: longer than any that cuptiprof writes")
        if environment is not None and not line.endswith(b"\n"):  # and a writer will drop it
            notes.append(f"{path}: its last line is cut off and was left out")
            break
        try:
            data = _object(line)
            if environment is None or data.get("kind") == "run":
                environment, process = _run(data)
                environments[process] = environment
                rows = processes.setdefault(process, {})
                continue
            if data.get("kind") != "point":
                raise ResultError(f"neither a run nor a point: {str(data.get('kind'))[:40]!r}")
            row = _with_environment(Row.from_dict(data), environment)
        except ResultError as e:
            raise ResultError(f"{path}, line {number}: {e.message}", hint=e.hint) from None
        rows.pop(row.key, None)
        rows[row.key] = row
    if environment is None:
        raise ResultError(f"{path} is empty")
    return {n: Results(tuple(rows.values()), environments[n], tuple(notes)) for n, rows in processes.items()}


def _object(line: bytes) -> Mapping[str, Any]:
    try:
        data = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as e:
        raise ResultError(f"not JSON: {str(e)[:200]}", hint=_HINT) from None
    if not isinstance(data, dict):
        raise ResultError("not a JSON object", hint=_HINT)
    return data


_HINT = "results are written by `cuptiprof bench --json FILE` or `pytest --cuptiprof-json FILE`"


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _run(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], int]:
    """The environment, and which process it is."""
    if data.get("kind") != "run" or data.get("program") != PROGRAM:
        raise ResultError("not a results file of cuptiprof bench", hint=_HINT)
    if data.get("format") != FORMAT:
        raise ResultError(
            f"results of format {str(data.get('format'))[:40]!r}; this is cuptiprof {__version__}, which reads {FORMAT}"
        )
    environment = data.get("environment")
    if not isinstance(environment, dict):
        raise ResultError("a run without an environment")
    process = data.get("process", 1)
    if isinstance(process, bool) or not isinstance(process, int) or not 1 <= process <= MAX_PROCESSES:
        raise ResultError(f"no number of a process: {str(process)[:40]!r}")
    return environment, process


def _with_environment(row: Row, environment: Mapping[str, Any]) -> Row:
    if row.measurement is None:
        return row
    merged = {**environment, **row.measurement.environment}
    return replace(row, measurement=replace(row.measurement, environment=merged))
