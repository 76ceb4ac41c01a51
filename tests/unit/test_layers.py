"""Who may include or import whom (docs/internals.md)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CSRC = ROOT / "csrc"
# Rooms of csrc from the ground up: what each includes beside itself. Files that lie in a room with sub-rooms are above
# those. Nothing is allowed that stands further down, so that there is no circle.
ROOMS: dict[str, set[str]] = {
    "base": set(),
    "base/demangle": set(),
    "cupti": {"base"},
    "store": {"base"},
    "threads": {"base"},
    "filter": {"base", "base/demangle", "threads"},
    "launch": {"threads"},
    "collect/buffers": {"base"},
    "collect/setup": {"base", "cupti"},
    "nvtx": set(),
    "collect/graphs": {"store", "threads"},
    "collect/regions": {"base", "cupti", "store", "threads", "launch", "collect/buffers", "collect/graphs"},
    "collect/nvtx": {"base", "nvtx", "filter", "threads", "launch", "collect/regions"},
    "collect/torch": {"base", "store", "threads", "collect/regions"},
    "collect/records": {
        *("base", "cupti", "store", "threads", "filter"),
        *("collect/buffers", "collect/graphs", "collect/regions"),
    },
    "collect": {
        *("base", "cupti", "store", "threads", "launch"),
        *("collect/buffers", "collect/setup", "collect/regions", "collect/records"),
    },
    "counters/plan": {"base", "cupti", "filter"},
    "counters/strategy": {"base", "cupti", "filter", "threads", "launch", "counters/plan"},
    "counters/range": {"base", "cupti", "store", "launch", "counters/strategy"},
    "counters/sample": {"base", "cupti", "counters/strategy"},
    "counters": {"base", "cupti", "counters/strategy", "counters/range", "counters/sample"},
    "probes": {"base", "cupti"},
    "trace": {"base"},
    "session": {
        *("base", "cupti", "store", "threads", "launch"),
        *("collect", "collect/nvtx", "collect/records", "collect/regions", "collect/torch"),
        *("counters", "counters/strategy"),
    },
    "bindings/frames": {"base", "threads"},
    "bindings": {
        *("base", "base/demangle", "cupti", "store", "filter", "threads"),
        *("collect", "collect/nvtx", "collect/records", "collect/regions", "collect/torch", "bindings/frames"),
        *("counters", "counters/plan", "counters/strategy", "probes", "trace", "session"),
    },
    # The stand-in is a library of its own, with NVIDIA's headers and nothing of ours.
    "sim": set(),
    "sim/machine": {"sim"},
    "sim/counters": {"sim", "sim/machine"},
    "sim/activity": {"sim", "sim/machine", "sim/counters"},
    "sim/calls": {"sim/machine", "sim/counters", "sim/activity"},
    "sim/abi": {"sim", "sim/machine", "sim/counters", "sim/activity", "sim/calls"},
}
# Rooms that see NVIDIA's headers.
KNOWS_CUPTI = ("cupti", "launch", "collect", "counters", "probes", "session", "bindings", "sim")
SOURCES = sorted(p for p in CSRC.rglob("*") if p.suffix in (".h", ".cpp", ".def", ".cu"))


def room(path: Path) -> str:
    return path.relative_to(CSRC).parent.as_posix()


def included(path: Path) -> list[str]:
    return re.findall(r'#include "([^"]+)"', path.read_text())


def rooms_included(path: Path) -> set[str]:
    # A kernel's source (.cu) stands beside the header it includes.
    return {Path(i).parent.as_posix() for i in included(path) if "/" in i} - {room(path)}


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(CSRC)))
def test_includes_go_one_way(path: Path) -> None:
    text = path.read_text()
    assert rooms_included(path) <= ROOMS[room(path)], f"{path} includes {rooms_included(path) - ROOMS[room(path)]}"
    if room(path) != "bindings":
        assert "pybind11" not in text
    if not room(path).startswith("bindings"):
        assert "<Python.h>" not in text
    if not room(path).startswith(KNOWS_CUPTI):
        assert "<cupti" not in text and "<cuda.h>" not in text


def test_rooms_have_an_order() -> None:
    below: set[str] = set()
    for name, uses in ROOMS.items():
        assert uses <= below, f"{name} is allowed {uses - below}, which does not stand below it"
        below.add(name)


def test_no_permission_is_left_over() -> None:
    used: dict[str, set[str]] = {name: set() for name in ROOMS}
    for path in SOURCES:
        used[room(path)] |= rooms_included(path)
    assert used == ROOMS


def test_native_file_names_are_told_apart() -> None:
    """A header and its source share a name and a room; no other two files of csrc have the same name."""
    places: dict[str, set[Path]] = {}
    for path in SOURCES:
        places.setdefault(path.stem, set()).add(path.parent)
    assert not {name: found for name, found in places.items() if len(found) > 1}
