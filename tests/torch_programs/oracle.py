"""The path of operators around each launch, as torch's own profiler saw it: it nests what it recorded by thread and time.

The programs mark each launch by an empty scope right after it, "launch N", which has the launch's own surroundings.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._C._profiler import _ExperimentalConfig

from torch_programs.truth import Truth

_MARK = "launch "


class Oracle:
    """`paths`: number of the launch -> operators from the outermost, once the block has been left."""

    def __init__(self) -> None:
        self.paths: dict[int, tuple[str, ...]] = {}
        self.profiler: Any = None

    @contextmanager
    def watching(self, truth: Truth) -> Iterator[Oracle]:
        """torch.profiler on all threads, while the program runs."""
        everywhere = _ExperimentalConfig(profile_all_threads=True)
        activities = [torch.profiler.ProfilerActivity.CPU]
        truth.marks = True
        with torch.profiler.profile(activities=activities, experimental_config=everywhere) as profiler:
            yield self
        truth.marks = False
        self.profiler = profiler
        for root in profiler.profiler.kineto_results.experimental_event_tree():
            self._walk(root, ())

    def _walk(self, event: Any, around: tuple[str, ...]) -> None:
        if event.name.startswith(_MARK):
            self.paths[int(event.name.removeprefix(_MARK))] = around
        for child in event.children:
            # Engine threads begin anew: torch puts their work below what is open on the thread that made the nodes.
            if child.start_tid != event.start_tid:
                self._walk(child, ())
            # What begins in the nanosecond in which another ends is inside of it, says torch.
            elif child.start_time_ns >= event.end_time_ns:
                self._walk(child, around)
            else:
                self._walk(child, (*around, event.name))
