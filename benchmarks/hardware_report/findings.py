"""From a result of a GPU to findings: one capability, on one machine, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.hardware_report.untrusted import compact, dict_of, dicts_of, number_of, text_of

VERIFIED, FAILED, ANSWERED, NOT_HAD = "verified", "failed", "answered", "not had"
"""Verdicts. Not had: it was tried, and this machine could not give it; that verifies nothing."""

OUR_KERNEL = "cuptiprof (kernel)"
FLOOR_BAR = 1.10
RESIDUE_BAR = 1.05
PEERS = ("torch.profiler", "Proton", "cupti-python")
CHECKED = {"activity_kinds": "activity", "regions_of_launches": "region", "strategies_of_counters": "strategy"}
"""Questions whose answer is a check for each thing -> what the thing is."""
NO_RECORD = "no record came"

Said = tuple[str, str, str]
"""Key of the capability, verdict, detail."""


@dataclass(frozen=True, order=True)
class Machine:
    """Where a result was measured."""

    chip: str
    driver: str
    cupti: str

    def __str__(self) -> str:
        return f"{self.chip}, driver {self.driver}, CUPTI {self.cupti}"


@dataclass(frozen=True)
class Finding:
    """A capability's verdict on a machine. `key`: as in ``capabilities``; `detail`: for people, untrusted."""

    key: str
    verdict: str
    detail: str
    machine: Machine


def machine_of(data: dict[str, Any]) -> Machine | None:
    """Where a result was measured; None for one that is simulated, or that does not say it all: it verifies nothing."""
    if data.get("simulated") is not False or data.get("device") != "cuda":
        return None
    said = dict_of(data.get("machine"))
    version = said.get("cupti_version")
    chip, driver = text_of(said.get("chip")).strip(), text_of(said.get("driver")).strip()
    if not chip or not driver or isinstance(version, bool) or not isinstance(version, int) or not 0 < version < 10**9:
        return None
    return Machine(chip[:60], driver[:60], str(version))


def findings(data: dict[str, Any]) -> Iterator[Finding]:
    """What a result file shows; nothing where it is simulated or of an unknown kind."""
    machine = machine_of(data)
    reader = READERS.get(text_of(data.get("benchmark")))
    if machine is None or reader is None:
        return
    for key, verdict, detail in reader(data):
        yield Finding(key, verdict, detail, machine)


def _hardware(data: dict[str, Any]) -> Iterator[Said]:
    if data.get("verify") is not None:
        yield from _verify(dict_of(data.get("verify")))
    for answer in dicts_of(data.get("probes")):
        yield from _question(answer)
    for part in dicts_of(data.get("parts")):
        if part.get("part") == "tests":
            tail = part.get("tail")
            said = text_of(tail[-1]) if isinstance(tail, list) and tail else ""
            yield "tests", VERIFIED if part.get("ok") is True else FAILED, said
    if data.get("soak") is not None:
        yield from _soak(dict_of(data.get("soak")))
    if data.get("harness") is not None:
        yield from _harness(dict_of(data.get("harness")))
    if data.get("cupti_versions") is not None:
        yield from _cupti_versions(dict_of(data.get("cupti_versions")))


def _verify(data: dict[str, Any]) -> Iterator[Said]:
    """A probe is verified where a number of it is right and none is wrong or failed."""
    if dict_of(data.get("metadata")).get("simulated") is not False:
        return
    probes: dict[str, list[dict[str, Any]]] = {}
    for row in dicts_of(data.get("rows")):
        probes.setdefault(text_of(row.get("probe")), []).append(row)
    for probe, rows in probes.items():
        bad = [r for r in rows if r.get("verdict") not in ("right", "skipped")]
        right = sum(r.get("verdict") == "right" for r in rows)
        key = f"verify:{probe}"
        if bad:
            first = bad[0]
            numbers = f"expected {_short(first.get('expected'))}, measured {_short(first.get('measured'))}"
            yield key, FAILED, f"{len(bad)} of {len(rows)} not right; {text_of(first.get('metric'))}: {numbers}"
        elif right:
            yield key, VERIFIED, f"{right} right" + (f", {len(rows) - right} skipped" if right < len(rows) else "")
        else:
            yield key, NOT_HAD, text_of(rows[0].get("why"))


def _short(value: Any) -> str:
    number = number_of(value)
    return "nothing" if math.isnan(number) else f"{number:.6g}"


def _question(answer: dict[str, Any]) -> Iterator[Said]:
    name = text_of(answer.get("probe"))
    if answer.get("simulated") is not False:
        return
    if "error" in answer or not isinstance(answer.get("answer"), dict):
        yield f"question:{name}", FAILED, text_of(answer.get("error")) or "no answer"
        return
    found = answer["answer"]
    if "not applicable" in found:
        yield f"question:{name}", NOT_HAD, text_of(found["not applicable"])
        return
    if name not in CHECKED:
        yield f"question:{name}", ANSWERED, text_of(found.get("summary")) or compact(found)
        return
    for thing, check in list(dict_of(found.get("checks")).items())[:100]:
        key = f"{CHECKED[name]}:{thing}"
        if check is True:
            yield key, VERIFIED, ""
        else:
            yield key, NOT_HAD if check == NO_RECORD else FAILED, text_of(check)


def _soak(data: dict[str, Any]) -> Iterator[Said]:
    if data.get("simulated") is not False:
        return
    made, lost = number_of(data.get("launches_made")), number_of(data.get("unexplained"))
    right = lost == 0 and made > 0 and data.get("complete") is True
    detail = f"{made:,.0f} launches, {lost:,.0f} unaccounted for, {_short(data.get('ns_per_launch'))} ns a launch, memory {_short(data.get('resident_to_budget'))} of the budget"
    if lost == 0 and made > 0 and data.get("complete") is not True:
        yield "soak", NOT_HAD, "time ran out: " + detail
    else:
        yield "soak", VERIFIED if right else FAILED, detail


def _harness(data: dict[str, Any]) -> Iterator[Said]:
    """By function: how far apart a tool's medians of it lie, and our kernel time over each tool's time."""
    if data.get("device") != "cuda":
        return
    functions: dict[str, dict[str, dict[str, Any]]] = {}
    for row in dicts_of(data.get("rows")):
        functions.setdefault(text_of(row.get("function")), {})[text_of(row.get("peer"))] = row
    for function, rows in functions.items():
        mine = number_of(dict_of(rows.get(OUR_KERNEL)).get("median_ns"))
        if not mine > 0:
            error = text_of(dict_of(rows.get(OUR_KERNEL)).get("error"))
            yield f"harness:agreement:{function}", FAILED, error or f"{OUR_KERNEL} gave no time"
            continue
        measured = {peer: r for peer, r in rows.items() if number_of(r.get("median_ns")) > 0}
        spreads = [f"{_short(r.get('range_percent'))} % {peer}" for peer, r in measured.items()]
        repeats = rows[OUR_KERNEL].get("medians_ns")
        times = len(repeats) if isinstance(repeats, list) else 0
        yield f"harness:spread:{function}", ANSWERED, f"largest less smallest of {times}: {', '.join(spreads)}"
        over = [
            f"{mine / number_of(r['median_ns']):.3f} of {peer}" for peer, r in measured.items() if peer != OUR_KERNEL
        ]
        yield f"harness:agreement:{function}", ANSWERED, f"{mine / 1000:.4g} us; {', '.join(over)}"


def _cupti_versions(data: dict[str, Any]) -> Iterator[Said]:
    if data.get("device") != "cuda":
        return
    for release, found in list(dict_of(data.get("releases")).items())[:50]:
        line = dict_of(found)
        why = compact({k: line[k] for k in ("records", "verify", "doctor") if k in line})
        yield (
            f"cupti:{release}",
            VERIFIED if line.get("right") is True else FAILED,
            "" if line.get("right") is True else why,
        )


def _clock_drift(data: dict[str, Any]) -> Iterator[Said]:
    keys = ("seconds", "records_to_raw", "monotonic_to_raw", "records_to_monotonic", "all_inside")
    yield "question:timestamps_against_raw_clock", ANSWERED, compact({k: data[k] for k in keys if k in data})


def _agreement(data: dict[str, Any]) -> Iterator[Said]:
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in dicts_of(data.get("rows")):
        parts.setdefault(text_of(row.get("part")), []).append(row)
    for part, rows in parts.items():
        bad = [r for r in rows if r.get("agrees") is not True]
        detail = f"{len(rows) - len(bad)} of {len(rows)} agree"
        for r in bad[:3]:
            detail += f"; {text_of(r.get('kernel'))[:60]}, {text_of(r.get('what'))}: ours {_short(r.get('ours'))}, theirs {_short(r.get('theirs'))}"
        yield f"agreement:{part}", FAILED if bad else VERIFIED, detail
    for part, reason in list(dict_of(data.get("missing")).items())[:20]:
        failed = text_of(reason).startswith("failed")
        yield f"agreement:{part}", FAILED if failed else NOT_HAD, text_of(reason)


def _overhead(data: dict[str, Any]) -> Iterator[Said]:
    """By workload: kernels alone against the floor and the peers, and what our own sessions leave behind."""
    workloads: dict[str, dict[str, dict[str, Any]]] = {}
    for row in dicts_of(data.get("rows")):
        if row.get("available") is True:
            workloads.setdefault(text_of(row.get("workload")), {})[text_of(row.get("condition"))] = row
    for finding in dicts_of(data.get("findings")):
        ratio = dict_of(finding.get("ratio"))
        if text_of(finding.get("question")).startswith("kernels over the bare collector"):
            middle = number_of(ratio.get("ratio"))
            detail = f"{middle:.3f} ({_short(ratio.get('low'))} to {_short(ratio.get('high'))})"
            yield f"overhead:floor:{text_of(finding.get('workload'))}", VERIFIED if middle <= FLOOR_BAR else FAILED, detail  # fmt: skip
    for workload, rows in workloads.items():
        mine = _step(rows.get("kernels"))
        peers = {p: _step(rows.get(p)) for p in PEERS}
        had = {p: ns for p, ns in peers.items() if ns > 0}
        if mine > 0 and had:
            detail = ", ".join(f"{mine / ns:.3f} of {p}" for p, ns in had.items())
            yield f"overhead:peers:{workload}", VERIFIED if mine < min(had.values()) else FAILED, detail
        ours = {c: r for c, r in rows.items() if r.get("group") == "ours" and "residue" in r}
        # Of so many comparisons one in twenty would differ by chance: Bonferroni's level.
        left = [c for c, r in ours.items() if dict_of(r["residue"]).get("verdict") == "SLOWER" and number_of(dict_of(r["residue"]).get("p_value")) * len(ours) < 0.05]  # fmt: skip
        # An interval that reaches far above 1 excludes nothing.
        open_ = [c for c, r in ours.items() if not number_of(dict_of(r["residue"]).get("high")) <= RESIDUE_BAR]
        if left:
            yield f"overhead:residue:{workload}", FAILED, f"after {', '.join(left)}"
        elif open_:
            yield f"overhead:residue:{workload}", NOT_HAD, f"too noisy to exclude {100 * (RESIDUE_BAR - 1):.0f} % after {', '.join(open_)}"  # fmt: skip
        elif ours:
            yield f"overhead:residue:{workload}", VERIFIED, f"none after {len(ours)} kinds of session"


def _step(row: dict[str, Any] | None) -> float:
    return number_of(dict_of(dict_of(row).get("step_ns")).get("median"))


READERS: dict[str, Callable[[dict[str, Any]], Iterator[Said]]] = {
    "hardware": _hardware,
    "overhead": _overhead,
    "agreement": _agreement,
    "soak": _soak,
    "cupti_versions": _cupti_versions,
    "clock_drift": _clock_drift,
}
