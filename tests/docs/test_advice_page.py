"""The page on advice has every threshold as it is in the code, and every rule."""

from __future__ import annotations

import re

from page import PAGES

from cuptiprof.analysis.thresholds import all_thresholds

PAGE = next(path for name, path in PAGES.items() if name.endswith("advice.md")).read_text()


def test_thresholds_are_those_of_the_code() -> None:
    rows = [
        f"| `{name}` | {f'{of.value:g} {of.unit}'.rstrip()} | {of.what} | {of.source} |"
        for name, of in all_thresholds().items()
    ]
    assert PAGE.rstrip().endswith("\n".join(rows))


def test_rules_are_named() -> None:
    rules = set(re.findall(r"`([a-z_]+)`", PAGE.split("## Rules")[1].split("## Thresholds")[0]))
    assert rules >= {
        "outside", "host_bound", "launch_bound", "synchronisation", "data_loader", "allocation", "calls", "small_copies",
        "pageable_copies", "exposed_copies", "few_blocks", "partial_warps", "tail", "low_occupancy", "tensor_cores", "communication",
        "long_steps", "memory_full", "fragmentation", "data_parallel", "gloo", "losses", "throttled", "gpu_errors",
    }  # fmt: skip
