"""Dumps of PyTorch's flight recorder of collectives, as pickle or as JSON: ``torch/csrc/distributed/c10d/FlightRecorder*`` is where they are made.

Torch writes one file a rank, ``nccl_trace_rank_RANK``, when a collective times out, or when asked (``torch._C._distributed_c10d._dump_fr_trace()``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from cuptiprof.data.checked import checked
from cuptiprof.errors import ResultError
from cuptiprof.io.plain_pickle import read_plain_pickle
from cuptiprof.text.names import printable

LARGEST_DUMP = 512 << 20  # bytes
_NAME = re.compile(r"(?P<prefix>[\w.-]*?)(?P<rank>\d{1,7})(?:\.json)?", re.ASCII)
_PREFIXES = ("nccl_trace_rank_", "comm_lib_trace_rank_", "fr_trace_rank_")
_VERSION = re.compile(r"2\.\d{1,4}", re.ASCII)

Int64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Sizes = tuple[Annotated[tuple[Count, ...], msgspec.Meta(max_length=64)], ...]


class CallingFrame(msgspec.Struct, frozen=True):
    """A frame of the Python stack."""

    name: str
    filename: str
    line: Int64


class CollectiveEntry(msgspec.Struct, frozen=True):
    """A collective, send or receive of one rank, as the flight recorder has it.

    Attributes:
        record_id: number among all of the rank.
        process_group: name and description of its group.
        collective_seq_id, p2p_seq_id: number in the group, among collectives and among sends and receives.
        profiling_name: ``nccl:all_reduce``, ``nccl:send 0->1``.
        input_sizes, output_sizes: shapes of the tensors; input_dtypes, output_dtypes: their types.
        state: how far it had come when torch last looked. Of gloo it stays "scheduled".
        time_created_ns: Unix time, when it was enqueued. time_discovered_started_ns, time_discovered_completed_ns: when torch saw that; None or 0: not.
        duration_ms: None: not measured.
        retired: torch watches it no more: it is complete, or timed out.
        frames: the stack that called it, the innermost first; not in JSON.
    """

    record_id: Count
    process_group: tuple[str, str]
    collective_seq_id: Count
    profiling_name: str
    input_sizes: Sizes
    output_sizes: Sizes
    state: Literal["scheduled", "started", "completed"]
    p2p_seq_id: Count = 0
    op_id: Count = 0
    input_dtypes: tuple[str, ...] = ()
    output_dtypes: tuple[str, ...] = ()
    time_created_ns: Int64 = 0
    time_discovered_started_ns: Int64 | None = None
    time_discovered_completed_ns: Int64 | None = None
    duration_ms: float | None = None
    timeout_ms: Int64 = 0
    retired: bool = False
    is_p2p: bool = False
    frames: tuple[CallingFrame, ...] = ()

    @property
    def operation(self) -> str:
        """Without the backend: ``all_reduce``."""
        return printable(self.profiling_name.partition(":")[2] or self.profiling_name)

    @property
    def is_done(self) -> bool:
        """Nobody waits in it. Gloo's state says nothing."""
        return self.state == "completed" or (self.retired and self.profiling_name.startswith("gloo:"))


class _Group(msgspec.Struct, frozen=True):
    desc: str
    ranks: str


class _Dump(msgspec.Struct, frozen=True):
    version: str
    pg_config: dict[str, _Group] = {}
    entries: tuple[CollectiveEntry, ...] = ()


@dataclass(frozen=True)
class CollectiveDump:
    """The dump of one rank.

    Attributes:
        rank: by the file's name. version: of the format.
        members: ranks of each group, by its name; without those of which torch says none (gloo).
        entries: in the order in which they were recorded.
    """

    rank: int
    version: str
    members: dict[str, frozenset[int]]
    entries: tuple[CollectiveEntry, ...]


def parse_collective_dump(data: bytes, rank: int, what: str = "the dump") -> CollectiveDump:
    """Of a file's content, pickle or JSON. A pickle is never unpickled (``io/plain_pickle.py``).

    Raises:
        ResultError: it is none, is damaged, or has what no such dump has.
    """
    if len(data) > LARGEST_DUMP:
        raise ResultError(f"{what}: {len(data):,} bytes", hint=f"at most {LARGEST_DUMP:,}")
    if data[:1].strip() in (b"{", b""):
        try:
            value = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
            raise ResultError(f"{what}: {str(e)[:200]}", hint="a dump of PyTorch's flight recorder") from None
    else:
        value = read_plain_pickle(data, what)
    dump = checked(value, _Dump, what, hint="a dump of PyTorch's flight recorder")
    if not _VERSION.fullmatch(dump.version):
        raise ResultError(
            f"{what}: version {printable(dump.version[:20])!r}", hint="2.x is known: PyTorch 2.4 and later"
        )
    members = {}
    for name, group in dump.pg_config.items():
        try:
            ranks = msgspec.json.decode(group.ranks, type=tuple[Annotated[int, msgspec.Meta(ge=0, lt=10_000_000)], ...])
        except (msgspec.DecodeError, msgspec.ValidationError):
            raise ResultError(
                f"{what}: ranks of group {printable(name[:60])!r}: {printable(group.ranks[:60])!r}"
            ) from None
        if ranks:
            members[name] = frozenset(ranks)
    return CollectiveDump(rank, dump.version, members, dump.entries)


def read_collective_dumps(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[CollectiveDump]:
    """Files, or all dumps in a folder; by rank. Names end with the rank, ``nccl_trace_rank_3`` or ``nccl_trace_rank_3.json``.

    Raises:
        ResultError: none is there, one cannot be read, or two are of one rank.
    """
    if isinstance(paths, (str, os.PathLike)) and Path(paths).is_dir():
        found = dumps_in(paths)
        if not found:
            raise ResultError(f"{paths}: no dumps of PyTorch's flight recorder", hint=f"files {_PREFIXES[0]}RANK")
    else:
        found = [Path(paths)] if isinstance(paths, (str, os.PathLike)) else [Path(path) for path in paths]
    by_rank: dict[int, CollectiveDump] = {}
    for path in found:
        match = _NAME.fullmatch(path.name)
        if match is None:
            raise ResultError(
                f"{path}: of which rank?", hint="the name of a dump ends with its rank, nccl_trace_rank_3"
            )
        rank = int(match["rank"])
        if rank in by_rank:
            raise ResultError(f"{path}: there is another dump of rank {rank}", hint="name those of one moment")
        try:
            with open(path, "rb") as file:
                data = file.read(LARGEST_DUMP + 1)
        except OSError as e:
            raise ResultError(f"{path}: {e.strerror}") from None
        by_rank[rank] = parse_collective_dump(data, rank, str(path))
    return [by_rank[rank] for rank in sorted(by_rank)]


def dumps_in(folder: str | os.PathLike[str]) -> list[Path]:
    """Files there that have the name of a dump; of a rank that has both forms the pickle, which has stacks."""
    named: dict[tuple[str, int], Path] = {}
    for path in sorted(Path(folder).iterdir()):
        match = _NAME.fullmatch(path.name)
        if match and match["prefix"] in _PREFIXES and path.is_file():
            named.setdefault((match["prefix"], int(match["rank"])), path)
    return list(named.values())
