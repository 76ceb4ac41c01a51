"""The catalogue's data files, read when first needed."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from importlib import resources
from typing import cast

from cuptiprof.metrics.perfworks import Kind


@dataclass(frozen=True)
class Entry:
    """A named metric before any chip is chosen; ``chips`` as in the files, ``expression`` empty if there is none."""

    name: str
    expression: str
    unit: str
    kind: Kind
    status: str
    category: str
    chips: str
    description: str
    notes: str
    nvidia_expression: str

    def available_on(self, chip: str) -> bool:
        return bool(self.expression) and is_among(chip, self.chips)


@dataclass(frozen=True)
class Override:
    """On ``chips``, ``replace`` in the expressions of ``names`` (empty: of all) is ``replacement``."""

    chips: frozenset[str]
    names: frozenset[str]
    replace: str
    replacement: str
    reason: str

    def applies(self, name: str, expression: str) -> bool:
        return (not self.names or name in self.names) and self.replace in expression


@dataclass(frozen=True)
class SectionRow:
    """One number of an ncu section: ``where`` is header, metrics, body or top."""

    section: str
    where: str
    label: str
    metric: str
    chips: str
    missing_on: str


@dataclass(frozen=True)
class MetricSection:
    """An ncu section: its place on the page, the sets it is in, its numbers."""

    name: str
    order: int
    sets: tuple[str, ...]
    rows: tuple[SectionRow, ...]


@dataclass(frozen=True)
class Arrow:
    """An arrow of nvprof's memory diagram: what flows from ``source`` to ``target``.

    ``metrics`` are groups of names for one quantity, the nvprof name of its time first.
    """

    number: int
    source: str
    target: str
    metrics: tuple[tuple[str, ...], ...]
    note: str


def is_among(chip: str, chips: str) -> bool:
    """Whether ``chip`` is in a list as the data files write it: "*", "A B" or "!A B" (all but these)."""
    if chips.startswith("!"):
        return chip not in chips[1:].split()
    return chips == "*" or chip in chips.split()


def _rows(file: str) -> Iterator[dict[str, str]]:
    text = resources.files("cuptiprof").joinpath(f"metrics/lists/{file}").read_text(encoding="utf-8")
    lines = text.split("\n")
    head = lines[0].split("\t")
    for line in lines[1:]:
        if line:
            yield dict(zip(head, line.split("\t"), strict=True))


def _entries(file: str) -> dict[str, Entry]:
    return {
        row["name"]: Entry(
            row["name"],
            row["expression"],
            row["unit"],
            cast(Kind, row.get("kind", "count")),
            row["status"],
            row.get("category", "event"),
            row["chips"],
            row["description"],
            row["notes"],
            row["nvidia_expression"],
        )
        for row in _rows(file)
    }


@functools.lru_cache(maxsize=1)
def metrics() -> dict[str, Entry]:
    """nvprof's metrics by name."""
    return _entries("nvprof_metrics.tsv")


@functools.lru_cache(maxsize=1)
def events() -> dict[str, Entry]:
    """nvprof's events by name."""
    return _entries("nvprof_events.tsv")


@functools.lru_cache(maxsize=1)
def derived() -> dict[str, Entry]:
    """Rooflines and ncu's derived metrics by name."""
    return _entries("derived.tsv")


@functools.lru_cache(maxsize=1)
def overrides() -> tuple[Override, ...]:
    return tuple(
        Override(
            frozenset(row["chips"].split()),
            frozenset() if row["applies_to"] == "*" else frozenset(row["applies_to"].split()),
            row["replace"],
            row["with"],
            row["reason"],
        )
        for row in _rows("overrides.tsv")
    )


@functools.lru_cache(maxsize=1)
def presets() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Preset -> (description, members); a member "section:NAME" stands for that ncu section."""
    return {row["name"]: (row["description"], tuple(row["members"].split())) for row in _rows("presets.tsv")}


@functools.lru_cache(maxsize=1)
def memory_path() -> tuple[Arrow, ...]:
    """The arrows of nvprof's memory diagram in its numbering, 1 to 16; some have no metric, ``note`` says why."""
    return tuple(
        Arrow(
            int(row["number"]),
            row["source"],
            row["target"],
            tuple(tuple(group.split("|")) for group in row["metrics"].split()),
            row["notes"],
        )
        for row in _rows("memory_path.tsv")
    )


@functools.lru_cache(maxsize=1)
def sections() -> dict[str, MetricSection]:
    """ncu's sections by identifier, in the order of its pages."""
    rows: dict[str, list[SectionRow]] = {}
    name = ""
    for row in _rows("ncu_sections.tsv"):
        name = row["section"] or name
        rows.setdefault(name, []).append(
            SectionRow(name, row["where"], row["label"], row["metric"], row["chips"], row["missing_on"])
        )
    return {
        row["section"]: MetricSection(
            row["section"], int(row["order"]), tuple(row["sets"].split()), tuple(rows.get(row["section"], ()))
        )
        for row in _rows("ncu_section_sets.tsv")
    }


def names_of(chips_field: str, all_chips: Collection[str]) -> list[str]:
    """The chips of a list as the data files write it."""
    return [chip for chip in all_chips if is_among(chip, chips_field)]
