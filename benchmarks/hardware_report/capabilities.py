"""What the page lists: every capability that hardware could verify, from the code that has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.hardware_report.findings import CHECKED, PEERS

WORKLOADS = {
    "launch_loop": "empty kernels launched from C",
    "launch_loop_8_threads": "the same from 8 threads",
    "inference": "many small kernels, batch 1",
    "training": "a transformer's training step",
    "graph_replay": "a CUDA graph replayed",
    "triton": "Triton kernels",
}
HARNESS_QUESTIONS = {
    "spread": "spread of repeated medians of strategy kernel, beside those of the others",
    "agreement": "kernel time over what do_bench, CUPTI timing and the others report",
}
RELEASES = ("12.6", "12.9", "13.0", "13.4")


@dataclass(frozen=True)
class Capability:
    """One row. `key`: as findings name it; `text`: what it is; `note`: what the code takes for granted, or the bar."""

    key: str
    text: str
    note: str = ""


@dataclass(frozen=True)
class Section:
    """One table with a sentence above it; `note`: heading of the column of notes, "" for none."""

    title: str
    about: str
    rows: tuple[Capability, ...]
    note: str = ""


def _named(prefix: str, names: Sequence[str], texts: dict[str, str] | None = None) -> tuple[Capability, ...]:
    return tuple(Capability(f"{prefix}:{n}", (texts or {}).get(n, n)) for n in names)


def _overhead() -> tuple[Capability, ...]:
    rows = []
    for name, text in WORKLOADS.items():
        rows += [
            Capability(f"overhead:floor:{name}", f"{name} ({text}): kernels only, over a bare collector in C", "at most 1.10"),
            Capability(f"overhead:peers:{name}", f"{name}: kernels only, over {', '.join(PEERS)}", "below each"),
            Capability(f"overhead:residue:{name}", f"{name}: step time after stop, over before start", "not above 1, known to 5 %"),
        ]  # fmt: skip
    return tuple(rows)


def sections() -> list[Section]:
    """All of them, in the order of the page."""
    from benchmarks.harness_peers import GPU_FUNCTIONS
    from benchmarks.probes.__main__ import PROBES, assumed, question
    from benchmarks.probes.capabilities import STRATEGIES, TABLES
    from cuptiprof.verify import all_probes

    asked = [n for n in PROBES if n not in CHECKED]
    return [
        Section("Kinds of activity", "Each gave records, with nothing lost.", _named("activity", list(TABLES))),
        Section(
            "Regions",
            "Each kernel had the region open on its launching thread, nested and in threads.",
            _named("region", ("callback",), {"callback": "by launch callbacks"}),
        ),
        Section(
            "Strategies of counters",
            "Each gave values, and the same number of executed instructions.",
            _named("strategy", list(STRATEGIES)),
        ),
        Section(
            "Probes of `cuptiprof verify`",
            "Numbers that follow from launch parameters by arithmetic ([verify](verify.md)).",
            tuple(Capability(f"verify:{p.name}", p.name, f"{p.subject}: {p.what}") for p in all_probes().values()),
            "what",
        ),
        Section(
            "Agreement with other tools",
            "Times within 1 %, counts and rates within 2 %, instructions and operations equal (`python -m benchmarks.agreement`).",
            (
                Capability("agreement:torch.profiler", "a PyTorch step under torch.profiler", "times, counts, names, grids, streams"),
                Capability("agreement:ncu, step", "the same step under ncu", "counters of every kernel"),
                Capability("agreement:ncu, probes", "the probes of `verify` under ncu", "each probe's own counters"),
            ),
            "compared",
        ),
        Section(
            "Benchmark harness",
            "The same function measured again and again by each tool, in turn (`python -m benchmarks.harness_peers --device cuda`). Tools "
            "differ in what they include (launch gaps, a cold L2), so agreement is a number and not a verdict.",
            tuple(
                Capability(f"harness:{question}:{name}", f"{name}: {text}")
                for name in GPU_FUNCTIONS
                for question, text in HARNESS_QUESTIONS.items()
            ),
        ),
        Section("Overhead", "Ratios with 95 % intervals (`python -m benchmarks.overhead`).", _overhead(), "bar"),
        Section(
            "Losses",
            "Every launch of one session accounted for (`python -m benchmarks.soak`).",
            (Capability("soak", "10,000,000 launches", "none unaccounted for"),),
            "bar",
        ),
        Section(
            "Releases of CUPTI",
            "The same binary with each (`python -m benchmarks.cupti_versions`).",
            tuple(Capability(f"cupti:{r}", r) for r in RELEASES),
        ),
        Section("Behaviour", "", (Capability("tests", "the tests of `tests/gpu`"),)),
        Section(
            "Questions that only a GPU answers",
            "What the code takes for granted; the stand-in behaves that way, which proves nothing about a GPU. "
            "`python -m benchmarks.probes NAME --device cuda` asks one.",
            tuple(Capability(f"question:{n}", f"`{n}`: {question(PROBES[n])}", assumed(PROBES[n])) for n in asked),
            "assumed",
        ),
    ]  # fmt: skip
