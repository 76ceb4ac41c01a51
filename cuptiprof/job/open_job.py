"""A job: the folder in which each of its ranks has saved its run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.io.run_folder import RUN_FILE, runs_in
from cuptiprof.io.run_header import RunHeader, parsed_header, read_header_alone
from cuptiprof.io.runs import open_run
from cuptiprof.io.runs_elsewhere import RunsElsewhere, address_in
from cuptiprof.job.rank_text import count_of, ranks_text
from cuptiprof.text.addresses import is_address, local_path, shown_path
from cuptiprof.text.names import printable

LARGEST_JOB = 1_000_000


class RankRun:
    """The saved run of one rank, of which ``run.json`` has been read.

    Attributes:
        rank: in the job.
        folder: of the run; an address is text.
        name: of it in the folder of its job.
        header: what ``run.json`` says.
    """

    def __init__(
        self, rank: int, folder: Path | str, header: RunHeader, elsewhere: RunsElsewhere | None = None
    ) -> None:
        self.rank, self.folder, self.header, self._elsewhere = rank, folder, header, elsewhere
        self.name = os.path.basename(folder)

    @property
    def metadata(self) -> Mapping[str, Any]:
        return self.header.metadata

    @property
    def host(self) -> str:
        return str(self.metadata.get("host", ""))

    @property
    def restart(self) -> int:
        """How often the launcher had started the rank anew before."""
        return _whole(_distributed(self.header).get("restart"))

    @property
    def gpus(self) -> list[str]:
        """UUIDs of the GPUs that the process saw; none where the driver did not say."""
        listed = self.metadata.get("gpus")
        return [str(g.get("uuid", "")) for g in listed if isinstance(g, dict)] if isinstance(listed, list) else []

    def parts(self, table: str) -> list[str]:
        """The Parquet files of a table, absolute, or as the file system of the job calls them; none if it has no rows."""
        if not self.header.rows.get(table):
            return []
        if self._elsewhere is not None:
            return self._elsewhere.parts(self.name, table)
        return sorted(os.path.abspath(part) for part in (Path(self.folder) / table).glob("rank=*/part-*.parquet"))

    def open(self) -> Result:
        """
        Raises:
            ResultError: it is damaged.
        """
        return open_run(self.folder)

    def __repr__(self) -> str:
        return f"<cuptiprof.job.RankRun: rank {self.rank} on {self.host}>"


class Job:
    """The runs of a job; made by :func:`cuptiprof.open_job`, which reads their ``run.json`` and nothing more.

    Attributes:
        folder: that they lie in; an address is text.
        runs: by rank, in order.
        world_size: ranks of the job, as they say themselves.
        missing: ranks without a run that can be opened.
        damaged: name of a run that cannot be opened -> why.
        files: fsspec's file system of an address; None: the folder is on this machine.
        left_out: names of further runs -> why: an earlier attempt of a rank, another process than a rank.
    """

    def __init__(
        self,
        folder: Path | str,
        runs: dict[int, RankRun],
        world_size: int,
        damaged: dict[str, str],
        left_out: dict[str, str],
        files: Any = None,
    ) -> None:
        self.folder, self.runs, self.world_size, self.files = folder, runs, world_size, files
        self.damaged, self.left_out = damaged, left_out
        self.missing = [rank for rank in range(world_size) if rank not in runs]

    @property
    def ranks(self) -> list[int]:
        """Those that have a run."""
        return list(self.runs)

    @property
    def simulated(self) -> bool:
        """Whether any of the runs was made on the simulated device."""
        return any(run.metadata.get("simulated") for run in self.runs.values())

    def rank(self, rank: int) -> Result:
        """The run of one rank.

        Raises:
            ResultError: it has none, or it is damaged.
        """
        if rank not in self.runs:
            raise ResultError(
                f"{shown_path(self.folder)}: rank {rank} has no run", hint=f"there are {ranks_text(self.ranks)}"
            )
        return self.runs[rank].open()

    def __iter__(self) -> Iterator[Result]:
        """The runs, one after the other, each opened when it is its turn; what proves damaged is left out and added to `damaged`."""
        for rank, run in list(self.runs.items()):
            try:
                result = run.open()
            except ResultError as e:
                self.leave_out(rank, str(e))
                continue
            yield result

    def __len__(self) -> int:
        return len(self.runs)

    def leave_out(self, rank: int, why: str) -> None:
        """The run of a rank has proved damaged."""
        run = self.runs.pop(rank)
        self.damaged[run.name] = why
        self.missing = sorted({*self.missing, rank})

    def notes(self) -> list[str]:
        """What is not as it should be, a sentence each."""
        said = []
        if self.missing:
            are = "are" if len(self.missing) > 1 else "is"
            said.append(f"{ranks_text(self.missing)} of {self.world_size:,} {are} missing")
        said += [f"LEFT OUT: {name}: {why}" for name, why in [*self.damaged.items(), *self.left_out.items()]]
        ids = {str(_distributed(run.header).get("job", "")) for run in self.runs.values()}
        if len(ids) > 1:
            said.append(f"runs of {len(ids)} jobs lie here, by the launcher's IDs: {', '.join(sorted(ids)[:4])}")
        return [printable(line) for line in said]

    def __repr__(self) -> str:
        return f"<cuptiprof.job.Job: {len(self)} of {count_of(self.world_size, 'rank')}>"


def open_job(folder: str | os.PathLike[str]) -> Job:
    """Open the folder in which the ranks of a job saved their runs (``Result.save_rank``, ``cuptiprof run -o`` under torchrun, mpirun or srun).

    What can be opened is; what is damaged or missing is said by the job. Of a rank that was restarted the last attempt counts.

    Args:
        folder: a path, or an address that fsspec opens (``s3://bucket/job``), where the runs stay: what is asked is read from there.

    Raises:
        ResultError: there is no such folder, or no run in it that can be opened.
    """
    elsewhere = RunsElsewhere(os.fspath(folder)) if is_address(folder) else None
    path: Path | str = Path(local_path(folder)) if elsewhere is None else os.fspath(folder)
    shown = shown_path(path)
    if not (os.path.isdir(path) if elsewhere is None else elsewhere.is_folder()):
        raise ResultError(f"no such folder: {shown}", hint="name the folder that was given to -o or save_rank")
    if (Path(path) / RUN_FILE).exists() if elsewhere is None else elsewhere.is_run():
        raise ResultError(
            f"{shown} is the run of one process", hint="cuptiprof.open opens it; a job is a folder of runs"
        )
    damaged, left_out = {}, {}
    found: dict[int, list[RankRun]] = {}
    sizes = [0]
    for name, read in _headers(path, elsewhere):
        try:
            header = read()
        except ResultError as e:
            damaged[name] = e.message
            continue
        distributed = _distributed(header)
        rank = _whole(distributed.get("rank"), -1)
        if not 0 <= rank < LARGEST_JOB:
            left_out[name] = "of a process that is no rank"
            continue
        sizes.append(min(_whole(distributed.get("world_size")), LARGEST_JOB))
        found.setdefault(rank, []).append(
            RankRun(rank, path / name if isinstance(path, Path) else address_in(path, name), header, elsewhere)
        )
    if not found:
        names = [*damaged, *left_out]
        raise ResultError(
            f"{shown}: none of {len(names)} runs is of a rank and can be opened"
            if names
            else f"{shown}: no saved runs",
            hint="; ".join(f"{n}: {w}" for n, w in [*damaged.items(), *left_out.items()][:3])
            or "start the job with: torchrun ... -m cuptiprof run -o FOLDER train.py",
        )
    runs = {}
    for rank in sorted(found):
        *others, runs[rank] = sorted(found[rank], key=lambda run: (run.restart, _started(run)))
        left_out |= {run.name: f"an earlier run of rank {rank}" for run in others}
    size = max(max(sizes), max(runs) + 1)
    return Job(path, runs, size, damaged, left_out, None if elsewhere is None else elsewhere.files)


def _headers(path: Path | str, elsewhere: RunsElsewhere | None) -> Iterator[tuple[str, Callable[[], RunHeader]]]:
    """Names of the runs, and what reads their headers."""
    if elsewhere is None:
        for run in runs_in(path):
            yield run.name, partial(read_header_alone, run)
        return
    for name, content in elsewhere.headers().items():
        yield name, partial(parsed_header, f"{shown_path(path)}/{name}", content)


def _distributed(header: RunHeader) -> Mapping[str, Any]:
    given = header.metadata.get("distributed")
    return given if isinstance(given, dict) else {}


def _started(run: RankRun) -> int:
    """Unix time of its first pair of clocks; 0: it says none."""
    pairs = run.metadata.get("clock_pairs")
    try:
        return _whole(pairs[0][1])  # type: ignore[index]
    except (TypeError, IndexError, KeyError):
        return 0


def _whole(value: Any, otherwise: int = 0) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise
