"""Who may include or import whom (docs/internals.md)."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cuptiprof

ROOT = Path(__file__).resolve().parents[2]
CSRC = ROOT / "csrc"
# Rooms of csrc from the ground up: what each includes beside itself. Files that lie in a room with sub-rooms are above
# those. Nothing is allowed that stands further down, so that there is no circle.
ROOMS: dict[str, set[str]] = {
    "base": set(),
    "base/demangle": set(),
    "cupti": {"base"},
    "store": {"base"},
    "filter": {"base", "base/demangle"},
    "threads": {"base"},
    "launch": {"threads"},
    "collect/buffers": {"base"},
    "collect/setup": {"base", "cupti"},
    "collect/regions": {"base", "cupti", "store", "threads", "launch", "collect/buffers"},
    "collect/records": {"base", "cupti", "store", "filter", "collect/buffers", "collect/regions"},
    "collect": {
        *("base", "cupti", "store", "threads", "launch"),
        *("collect/buffers", "collect/setup", "collect/regions", "collect/records"),
    },
    "counters/plan": {"base", "cupti", "filter"},
    "counters/strategy": {"base", "cupti", "filter", "launch", "counters/plan"},
    "counters/range": {"base", "cupti", "store", "launch", "counters/strategy"},
    "counters/sample": {"base", "cupti", "counters/strategy"},
    "counters": {"base", "cupti", "counters/strategy", "counters/range", "counters/sample"},
    "probes": {"base", "cupti"},
    "session": {
        *("base", "cupti", "store", "launch", "collect", "collect/records", "collect/regions"),
        *("counters", "counters/strategy"),
    },
    "bindings": {
        *("base", "base/demangle", "cupti", "store", "filter", "collect", "collect/records", "collect/regions"),
        *("counters", "counters/plan", "counters/strategy", "probes", "session"),
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
        assert "pybind11" not in text and "<Python.h>" not in text
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


def imports(path: Path) -> set[str]:
    out = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            out |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            out.add(node.module)
    return out


PACKAGE = ROOT / "cuptiprof"
ONLY_IN = {
    "rich": ("report/render/to_rich.py", "cli/"),
    "pyarrow": ("export/", "runs.py", "tables.py", "spill.py"),
    "torch": ("bench/torch_gpu.py", "sim/pytorch/dispatch_mode.py"),
    "matplotlib": ("bench/plot.py",),
    "pynvml": ("clocks.py",),
}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_python_layers(path: Path) -> None:
    name = str(path.relative_to(PACKAGE))
    used = imports(path)
    for library, places in ONLY_IN.items():
        if any(i == library or i.startswith(library + ".") for i in used):
            assert name.startswith(places), f"{name} imports {library}"
    if name.startswith(("report/", "export/")):
        forbidden = {"cuptiprof.session", "cuptiprof.devices", "cuptiprof.locate", "cuptiprof.cli", "cuptiprof.sim"}
        assert not {i for i in used if any(i == f or i.startswith(f + ".") for f in forbidden)}


def test_import_is_light() -> None:
    """`import cuptiprof` brings in none of the big libraries and loads no CUDA library."""
    code = (
        "import sys, cuptiprof\n"
        "bad = [m for m in ('torch', 'pyarrow', 'rich', 'pandas', 'polars', 'matplotlib') if m in sys.modules]\n"
        "maps = open('/proc/self/maps').read()\n"
        "print(bad, 'libcuda' in maps or 'libcupti' in maps)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[] False"


def test_public_names() -> None:
    for name in cuptiprof.__all__:
        assert getattr(cuptiprof, name) is not None
    with pytest.raises(AttributeError):
        _ = cuptiprof.nonsense  # type: ignore[attr-defined]
