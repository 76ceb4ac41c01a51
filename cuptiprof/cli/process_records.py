"""What child processes leave for the one that ``cuptiprof run`` is: a small file each, in a folder of that one."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path
from typing import Literal

import msgspec

ENVIRONMENT = "CUPTIPROF_CHILDREN"

State = Literal["running", "saving", "saved", "empty", "forked", "failed"]


class ProcessRecord(msgspec.Struct):
    """One process.

    Attributes:
        state: "running": the last that was heard of it; "saved": its run lies at `path`; "empty": it used no GPU and entered no region;
            "forked": without an exec, so that neither CUDA nor CUPTI works in it; "failed": `why`.
    """

    pid: int
    argv: list[str]
    state: State
    why: str = ""
    path: str = ""
    since_ns: int = 0

    @property
    def is_alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except OSError:
            return False
        return True

    @property
    def title(self) -> str:
        """Its number and what it ran, in a few words."""
        words = [w if len(w) < 60 else w[:57] + "..." for w in self.argv[:8]]
        return f"{self.pid} ({' '.join(words)})" if words else str(self.pid)


class ChildPlan(msgspec.Struct):
    """What a child is told, by the environment.

    Attributes:
        records: folder for the records.
        output: what its run is called: ``-o`` of the command line, made absolute, with placeholders.
        options: of the command line, by argparse's names.
    """

    records: str
    output: str
    options: dict[str, bool | int | float | str | list[str] | None]


class Recorder:
    """Writes the record of this process, again and again."""

    def __init__(self, folder: str, argv: list[str]) -> None:
        self.record = ProcessRecord(os.getpid(), argv[:50], "running", since_ns=time.time_ns())
        self._file = os.path.join(folder, f"{self.record.pid}-{self.record.since_ns}.json")

    def say(self, state: State, *, why: str = "", path: str = "") -> None:
        """Raises:
        OSError: the parent is gone, and its folder with it.
        """
        self.record.state, self.record.why, self.record.path = state, why[:1000], path
        temporary = f"{self._file}.{secrets.token_hex(4)}"
        with open(temporary, "wb") as f:
            f.write(msgspec.json.encode(self.record))
        os.replace(temporary, self._file)


def read_records(folder: str) -> list[ProcessRecord]:
    """One of each process, in the order of their starts: what it said last, or said of itself after an exec."""
    found: dict[int, ProcessRecord] = {}
    for file in Path(folder).glob("*.json"):
        try:
            record = msgspec.json.decode(file.read_bytes(), type=ProcessRecord)
        except (OSError, msgspec.MsgspecError, ValueError):
            continue
        if (
            record.pid not in found
            or found[record.pid].since_ns <= record.since_ns
            or found[record.pid].state == "forked"
        ):
            found[record.pid] = record
    return sorted(found.values(), key=lambda r: r.since_ns)
