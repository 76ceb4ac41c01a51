"""What a result must hold, given what was launched while the session collected."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from dataclasses import dataclass, field

import cuptiprof

from .programs import SessionPlan
from .work import GRAPH_KERNEL, GRAPH_KERNELS, Work

NOT_LOST = ("filter_rejected", "orphan_correlations", "uncounted", "sample_overflows")


@dataclass
class Expected:
    """Launches that are certainly of one result, and those that may be (the session was switched beside them)."""

    certain: Counter[str] = field(default_factory=Counter)
    maybe: Counter[str] = field(default_factory=Counter)
    copies: int = 0
    copies_maybe: int = 0

    def add(self, work: Work, sure: bool) -> None:
        into = self.certain if sure else self.maybe
        into.update(work.launched)
        if work.graphs:
            into[GRAPH_KERNEL] += GRAPH_KERNELS * work.graphs
        if sure:
            self.copies += work.copies
        else:
            self.copies_maybe += work.copies


def path_of(kernel: str) -> str:
    """The regions that a kernel's name says it was launched in."""
    return kernel.split(".", 2)[2].replace("-", "/")


def is_part_of(region: str, path: str) -> bool:
    """`region` is `path` without some of its levels: those that were entered while nothing was collected."""
    levels = iter(path.split("/"))
    return region == "" or all(level in levels for level in region.split("/"))


def matches(pattern: str | None, name: str) -> bool:
    if pattern is None:
        return True
    if pattern.startswith("regex:"):
        return re.search(pattern[6:], name) is not None
    return fnmatch.fnmatchcase(name, pattern)


def check(result: cuptiprof.Result, expected: Expected, plan: SessionPlan) -> None:
    """Raises AssertionError."""
    kernels = result.kernels
    rows = Counter(str(n) for n in kernels["name"])
    losses = dict(result.losses)
    lost = sum(n for name, n in losses.items() if name not in NOT_LOST)
    known = expected.certain + expected.maybe
    strange = set(rows) - set(known)
    assert not strange, f"kernels that were not launched here: {sorted(strange)[:5]}"
    for name, n in rows.items():
        assert n <= known[name], f"{name}: {n} rows of {known[name]} launches"
        assert matches(plan.kernels, name), f"{name} was not selected"
    selected = Counter({n: c for n, c in expected.certain.items() if matches(plan.kernels, n)})
    short = sum(max(c - rows[n], 0) for n, c in selected.items())
    if plan.launch_skip == 0 and plan.launch_count is None:
        worst = [(n, c, rows[n]) for n, c in selected.items() if rows[n] < c][:5]
        assert short <= lost, f"{short} rows missing, {lost} losses {losses}: {worst}"
        if not expected.maybe:
            assert short == 0 or lost, worst
    elif not expected.maybe:
        most = len(list(selected.elements())) - plan.launch_skip
        most = min(most, plan.launch_count) if plan.launch_count is not None else most
        assert max(most, 0) - lost <= len(kernels) <= max(most, 0), f"{len(kernels)} rows, {most} expected"
    if "memcpy" in plan.activities:
        copies = len(result.memcpys)
        assert expected.copies - lost <= copies <= expected.copies + expected.copies_maybe
    check_regions(result, expected)


def check_regions(result: cuptiprof.Result, expected: Expected) -> None:
    overflow = result.losses["region_overflow"] > 0
    for name, region in {
        (str(n), str(r)) for n, r in zip(result.kernels["name"], result.kernels["region"], strict=True)
    }:
        if name == GRAPH_KERNEL:
            continue
        path = path_of(name)
        if name in expected.maybe or overflow:
            assert is_part_of(region, path), f"{name} in {region!r}: another's region"
        else:
            assert region == path, f"{name} in {region!r}"
