"""Flame graphs of GPU time by what launched it: collapsed stacks (flamegraph.pl, inferno) and speedscope's JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cuptiprof.analysis.trees.flame import NO_STACK, STACK_WORDS, FlameStack, StackBy, flame_stacks
from cuptiprof.data.python_stacks import Frame
from cuptiprof.data.result import Progress, Result
from cuptiprof.export.output_stream import opened_output
from cuptiprof.version import __version__

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write_collapsed(result: Result, path: Path, compress: bool, progress: Progress | None, by: StackBy) -> None:
    """One line a stack: ``outermost;...;innermost;kernel ns``. With several GPUs each is the root of its stacks."""
    del progress
    by_gpu = flame_stacks(result, by)
    lines = []
    for device, stacks in by_gpu.items():
        root = [f"GPU {device}"] if len(by_gpu) > 1 else []
        for stack in stacks:
            if stack.ns:
                names = [*root, *([_frame_name(f) for f in stack.frames] or [NO_STACK[by]]), stack.work]
                lines.append(f"{';'.join(map(_in_one_line, names))} {stack.ns}\n")
    _write(path, compress, lines)


def write_speedscope(result: Result, path: Path, compress: bool, progress: Progress | None, by: StackBy) -> None:
    """A "sampled" profile for each GPU: a sample a stack, whose weight is its time in ns."""
    del progress
    frames: dict[tuple[tuple[str, Any], ...], int] = {}

    def index(**frame: Any) -> int:
        return frames.setdefault(tuple(frame.items()), len(frames))

    profiles = []
    for device, stacks in flame_stacks(result, by).items():
        stacks = [stack for stack in stacks if stack.ns]
        profiles.append(
            {
                "type": "sampled",
                "name": f"GPU {device}",
                "unit": "nanoseconds",
                "startValue": 0,
                "endValue": sum(stack.ns for stack in stacks),
                "samples": [_sample(stack, NO_STACK[by], index) for stack in stacks],
                "weights": [stack.ns for stack in stacks],
            }
        )
    document = {
        "$schema": _SCHEMA,
        "exporter": f"cuptiprof {__version__}",
        "name": f"GPU time by {STACK_WORDS[by]}" + (" (simulated)" if result.simulated else ""),
        "activeProfileIndex": 0,
        "shared": {"frames": [dict(frame) for frame in frames]},
        "profiles": profiles,
    }
    _write(path, compress, [json.dumps(document)])


def _sample(stack: FlameStack, none: str, index: Any) -> list[int]:
    known = [
        index(name=f.function, file=f.file, line=f.line) if f.file else index(name=f.function) for f in stack.frames
    ]
    return [*(known or [index(name=none)]), index(name=stack.work)]


def _frame_name(frame: Frame) -> str:
    return f"{frame.function} ({frame.file}:{frame.line})" if frame.file else frame.function


def _in_one_line(name: str) -> str:
    """A frame's name must not end the frame (;) nor the line."""
    return "".join(c if c.isprintable() else " " for c in name.replace(";", ":"))


def _write(path: Path, compress: bool, texts: Iterable[str]) -> None:
    with opened_output(path, compress) as out:
        for text in texts:
            out.write(text.encode("utf-8", "backslashreplace"))
