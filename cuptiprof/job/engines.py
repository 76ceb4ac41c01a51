"""The tables of a job as relations of an engine that reads Parquet: DuckDB in this process, or Spark. What is asked of them is Ibis, the same for both.

Every engine reads the files as they lie there; nothing of them passes through this process but answers.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from cuptiprof.errors import CuptiprofError, ResultError
from cuptiprof.text.addresses import shown_path

if TYPE_CHECKING:
    from cuptiprof.job.open_job import Job, RankRun

WORDS = ("name", "category", "group", "ranks", "path")
"""Columns of text; the others that are asked for are whole numbers, int64 in every engine."""
COLUMNS: dict[str, tuple[str, ...]] = {
    "kernels": ("start", "end", "name", "step", "device", "collective"),
    "markers": ("start", "end", "category", "id"),
    "regions": ("start", "end", "path"),
    "collectives": ("start", "end", "name", "group", "ranks", "sequence", "in_bytes", "out_bytes", "group_size", "instance", "step"),
}  # fmt: skip
_MEMORY = re.compile(r"\d{1,6}(\.\d{1,3})? ?(MB|GB|TB|MiB|GiB|TiB)", re.IGNORECASE)
_SPARK = re.compile(r"spark(://[\w.-]+:\d{1,5}(,[\w.-]+:\d{1,5})*)?")

_AT_ONCE = 16
"""files asked for at once, of a job at an address"""
_KERNELS_AT_ONCE = 2_000_000
"""about, for questions that need all kernels of a rank: DuckDB sorts so many in 250 MB"""

Tables = Mapping[str, Any]
"""Name of a table -> relation (``ibis.Table``) with ``rank`` and the columns of ``COLUMNS``."""


class RankedTables(dict[str, Any]):
    """``Tables`` that can be had of a few ranks, too."""

    def __init__(self, read: Callable[[str, Sequence[str], str], Any], job: Job) -> None:
        super().__init__({name: read(name, _files(job.runs.values(), name), "job") for name in COLUMNS})
        self._read, self._job = read, job

    def by_ranks(self) -> Iterator[Tables]:
        """The tables of some ranks, of the next, and so on, in order; each is to be asked before the next ones are taken."""
        runs: list[RankRun] = []
        rows = 0
        for run in self._job.runs.values():
            more = run.header.rows.get("kernels", 0)
            if runs and rows + more > _KERNELS_AT_ONCE:
                yield self._some(runs)
                runs, rows = [], 0
            runs, rows = [*runs, run], rows + more
        yield self._some(runs)

    def _some(self, runs: Sequence[RankRun]) -> Tables:
        return {name: self._read(name, _files(runs, name), "some") for name in COLUMNS}


def open_tables(job: Job, engine: str = "duckdb", *, memory: str | None = None) -> Tables:
    """The tables of all ranks.

    A run whose Parquet files prove damaged is left out, as the job then says (``Job.leave_out``).

    Args:
        engine: "duckdb", "spark" (a cluster in this machine) or "spark://HOST:PORT".
        memory: DuckDB: beyond which it goes on with files in the folder for temporary files ("4GB"); None: four fifths of the machine's.

    Raises:
        CuptiprofError: the engine is not installed, or there is no such one.
        ResultError: no run is left.
    """
    if engine == "duckdb":
        if memory is not None and not _MEMORY.fullmatch(memory):
            raise CuptiprofError(f"memory {memory!r}: no such amount", hint='for example "4GB"')
        duckdb = _DuckDb(memory, job.files)
        _leave_out_damaged(job)
        return RankedTables(duckdb.table, job)
    if _SPARK.fullmatch(engine):
        if memory is not None:
            raise CuptiprofError(
                "the memory of Spark is that of its executors", hint="set spark.executor.memory where it is started"
            )
        if job.files is not None:
            raise CuptiprofError(
                f"Spark reads no job at {shown_path(job.folder)}", hint="--engine duckdb does; or copy the job to a folder that the cluster sees"
            )  # fmt: skip
        spark = _Spark(engine)
        _leave_out_damaged(job)
        return {name: spark.table(name, _files(job.runs.values(), name)) for name in COLUMNS}
    raise CuptiprofError(f"no such engine: {engine!r}", hint="one of: duckdb, spark, spark://HOST:PORT")


@contextmanager
def asking() -> Iterator[None]:
    """What an engine says when it cannot answer, in the one error tree.

    Raises:
        CuptiprofError: it ran out of memory, or lost its cluster.
    """
    loaded = [(sys.modules.get("duckdb"), "Error"), (sys.modules.get("pyspark.errors"), "PySparkException")]
    kinds = tuple(getattr(module, name) for module, name in loaded if module is not None)
    try:
        yield
    except kinds as e:
        raise CuptiprofError(
            f"the engine could not answer: {str(e).splitlines()[0][:300]}",
            hint="give it more memory (--memory; of Spark spark.executor.memory), or ask for another view",
        ) from None


def empty_table(name: str) -> Any:
    """A table without rows."""
    return _ibis().memtable({c: [] for c in _types(name)}, schema=_types(name))


def columns_of(relation: Any, name: str) -> Any:
    """The columns that are asked for, in the types that every engine has; what no file has is 0 or empty."""
    ibis = _ibis()
    have = set(relation.columns)
    picked = {
        column: relation[column].cast(kind) if column in have else ibis.literal("" if kind == "string" else 0, kind)
        for column, kind in _types(name).items()
    }
    return relation.select(**picked)


def _types(name: str) -> dict[str, str]:
    return {"rank": "int64", **{c: "string" if c in WORDS else "int64" for c in COLUMNS[name]}}


def _leave_out_damaged(job: Job) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Packages of fsspec's raise whatever their network libraries do.
    unreadable = (OSError, pa.ArrowException) if job.files is None else (Exception,)

    def what_is_wrong(run: RankRun) -> str:
        for name in COLUMNS:
            try:
                rows = sum(pq.read_metadata(part, filesystem=job.files).num_rows for part in run.parts(name))
            except unreadable as e:
                return f"{name}: damaged ({' '.join(str(e).split())[:200]})"
            if rows != run.header.rows.get(name, 0):
                return f"{name}: {rows:,} rows, and run.json says {run.header.rows.get(name, 0):,}"
        return ""

    runs = dict(job.runs)
    with ThreadPoolExecutor(1 if job.files is None else _AT_ONCE) as pool:
        for rank, wrong in zip(runs, pool.map(what_is_wrong, runs.values()), strict=True):
            if wrong:
                job.leave_out(rank, wrong)
    if not job.runs:
        raise ResultError(f"{shown_path(job.folder)}: no run is left", hint="; ".join(job.notes()[:3]))


def _files(runs: Iterable[RankRun], name: str) -> list[str]:
    return [part for run in runs for part in run.parts(name)]


def _ibis() -> Any:
    try:
        import ibis
    except ImportError:
        raise CuptiprofError("analyses of a job need Ibis and an engine", hint='pip install "cuptiprof[job]"') from None
    return ibis


class _DuckDb:
    def __init__(self, memory: str | None, files: Any) -> None:
        ibis = _ibis()
        try:
            self._connection = ibis.duckdb.connect(**({"memory_limit": memory} if memory else {}))
        except ImportError:
            raise CuptiprofError("DuckDB is not installed", hint='pip install "cuptiprof[job]"') from None
        import tempfile

        self._files = files
        if files is not None:
            self._connection.register_filesystem(files)
        self._connection.raw_sql("SET preserve_insertion_order = false")
        self._connection.raw_sql("SET temp_directory = '" + tempfile.gettempdir().replace("'", "''") + "'")

    def table(self, name: str, files: Sequence[str], called: str) -> Any:
        """
        Args:
            called: views of the same name take each other's place.
        """
        if not files:
            return empty_table(name)
        # Ibis's own read_parquet loads an extension for addresses, which comes from the network; the file system is here.
        places = [part if self._files is None else self._files.unstrip_protocol(part) for part in files]
        listed = ", ".join("'" + place.replace("'", "''") + "'" for place in places)
        read = f"read_parquet([{listed}], hive_partitioning = true, union_by_name = true)"
        self._connection.raw_sql(f"CREATE OR REPLACE TEMP VIEW {called}_{name} AS SELECT * FROM {read}")
        found = self._connection.table(f"{called}_{name}")
        return columns_of(found, name)


class _Spark:
    def __init__(self, master: str) -> None:
        ibis = _ibis()
        try:
            from pyspark.errors import PySparkException
            from pyspark.sql import SparkSession
        except ImportError:
            raise CuptiprofError("Spark is not installed", hint="pip install pyspark; it needs Java") from None
        builder = SparkSession.builder.appName("cuptiprof").config("spark.ui.enabled", "false")
        builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.sql.session.timeZone", "UTC")
        if master == "spark":
            builder = builder.master("local[*]").config("spark.driver.bindAddress", "127.0.0.1").config("spark.sql.shuffle.partitions", "8")  # fmt: skip
        else:
            builder = builder.master(master)
        try:
            self._session = builder.getOrCreate()
        except (PySparkException, OSError) as e:
            raise CuptiprofError(
                f"Spark did not start: {e}", hint="is Java there, and the cluster's address right?"
            ) from None
        with suppress(PySparkException):
            self._session.sparkContext.setLogLevel("ERROR")
        self._connection = ibis.pyspark.connect(self._session)

    def table(self, name: str, files: Sequence[str]) -> Any:
        if not files:
            return empty_table(name)
        from pyspark.sql.functions import input_file_name, regexp_extract

        frame = self._session.read.option("mergeSchema", "true").parquet(*files)
        # Each run is a root of its own, of which Spark makes no partitions: the rank is in the path.
        rank = regexp_extract(input_file_name(), r"/rank=(\d+)/[^/]*$", 1).cast("bigint")
        view = f"cuptiprof_job_{name}"
        frame.withColumn("rank", rank).createOrReplaceTempView(view)
        return columns_of(self._connection.table(view), name)
