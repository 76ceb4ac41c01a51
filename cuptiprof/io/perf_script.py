"""Reads what ``perf script`` prints: samples of the host, each with its time, thread and stack.

Format: tools/perf/Documentation/perf-script.txt of Linux. A sample is a line ``comm pid/tid [cpu] time: period event:`` (without ``-F pid`` only one number,
which is the thread), then a line ``address symbol+offset (object)`` for each frame, the innermost first, then an empty one. Without ``-g`` the only frame stands
on the first line; without ``-F dso`` no object.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np

from cuptiprof.data.host_samples import HostSamples
from cuptiprof.errors import ResultError
from cuptiprof.text.addresses import shown_path

_SAMPLE = re.compile(
    r"\s{0,16}(?P<comm>\S.{0,200}?)\s{1,64}(?P<first>\d{1,10})(?:/(?P<tid>\d{1,10}))?\s{1,64}(?:\[\d{1,6}\]\s{1,64})?"
    r"(?:[\w.+#]{4,6}\s{1,64})?(?P<s>[0-4]?\d{1,9})\.(?P<fraction>\d{1,9}):"
)
# The object may have brackets, and so may the symbol: an object is a path, or in square brackets, or a word.
_FRAME = re.compile(r"\s+[0-9a-f]{1,16} (?P<symbol>.+?) \((?P<object>[/\[].*|[^()]*)\)$")
_WITHOUT_OBJECT = re.compile(r"\s+[0-9a-f]{1,16} (?P<symbol>\S.*)$")
_ON_THE_LINE = re.compile(r":(?P<frame>\s{1,64}[0-9a-f]{1,16} .*)$")  # without -g there is one frame, behind the event
_OFFSET = re.compile(r"\+0x[0-9a-f]{1,16}$")
_LONGEST_LINE = 1 << 16
_MOST_FRAMES = 1024
_UNKNOWN = "[unknown]"


def read_perf_script(path: str | os.PathLike[str]) -> HostSamples:
    """Samples of a text that ``perf script`` printed.

    Raises:
        ResultError: it cannot be read, or has no sample.
    """
    functions: dict[str, int] = {}
    stacks: dict[tuple[int, ...], int] = {}
    rows: list[tuple[int, int, int]] = []
    of_stack: list[int] = []
    frames: list[int] = []
    skipped = 0

    def ended() -> None:
        if len(of_stack) < len(rows):
            of_stack.append(stacks.setdefault(tuple(frames), len(stacks)) if frames else -1)
        frames.clear()

    try:
        with Path(path).open("rb") as file:
            while line := file.readline(_LONGEST_LINE):
                text = line.decode("utf-8", "replace").rstrip("\n")
                if sample := _SAMPLE.match(text):
                    ended()
                    rows.append(_row(sample))
                    beside = _ON_THE_LINE.search(text, sample.end())
                    if beside and (name := _function(beside["frame"])):
                        frames.append(functions.setdefault(name, len(functions)))
                elif name := _function(text):
                    if len(frames) < _MOST_FRAMES:
                        frames.append(functions.setdefault(name, len(functions)))
                elif not text.strip():
                    ended()
                elif not text.startswith("#"):
                    skipped += 1
    except OSError as e:
        raise ResultError(f"cannot read {shown_path(path)}: {e.strerror}") from e
    ended()
    if not rows:
        raise ResultError(
            f"{shown_path(path)} has no sample of perf script",
            hint="perf record -k CLOCK_MONOTONIC -g ...; perf script --ns -F comm,pid,tid,time,event,ip,sym,dso > FILE",
        )
    time, process, thread = np.array(rows, np.int64).T
    return HostSamples(
        time,
        process,
        thread,
        np.array(of_stack, np.int64),
        stacks=tuple(stacks),
        functions=tuple(functions),
        skipped=skipped,
    )


def _row(sample: re.Match[str]) -> tuple[int, int, int]:
    """Time, process, thread."""
    time = int(sample["s"]) * 1_000_000_000 + int(sample["fraction"].ljust(9, "0"))
    first, thread = int(sample["first"]), sample["tid"]
    return (time, first, int(thread)) if thread is not None else (time, -1, first)


def _function(line: str) -> str:
    """Of a frame; empty: the line is none."""
    frame = _FRAME.match(line) if line.endswith(")") else None
    found = frame or _WITHOUT_OBJECT.match(line)
    if found is None:
        return ""
    symbol = _OFFSET.sub("", found["symbol"].strip())
    if symbol != _UNKNOWN or frame is None:
        return symbol
    return f"[{os.path.basename(frame['object']).strip('[]') or 'unknown'}]"
