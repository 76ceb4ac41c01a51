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
ALLOWED = {
    "base": {"base"},
    "cupti": {"base", "cupti"},
    "store": {"base", "store"},
    "filter": {"base", "filter"},
    "collect": {"base", "cupti", "store", "filter", "collect"},
    "counters": {"base", "cupti", "store", "filter", "counters"},
    "probes": {"base", "cupti", "probes"},
    "session": {"base", "cupti", "store", "filter", "collect", "counters", "session"},
    "bindings": {"base", "cupti", "store", "filter", "collect", "counters", "probes", "session", "bindings"},
    "sim": set(),
}


def layer(path: Path) -> str:
    inside = path.relative_to(ROOT / "csrc")
    return inside.parts[0] if len(inside.parts) > 1 else "session"


@pytest.mark.parametrize("path", sorted((ROOT / "csrc").rglob("*.[ch]*")), ids=lambda p: str(p.relative_to(ROOT)))
def test_includes_go_one_way(path: Path) -> None:
    text = path.read_text()
    includes = re.findall(r'#include "([^"]+)"', text)
    for include in includes:
        if "/" in include or include == "session.h":
            target = include.split("/")[0] if "/" in include else "session"
            assert target in ALLOWED[layer(path)], f"{path} includes {include}"
    if layer(path) != "bindings":
        assert "pybind11" not in text and "<Python.h>" not in text
    if layer(path) not in ("cupti", "collect", "counters", "probes", "sim", "bindings", "session"):
        assert "<cupti" not in text and "<cuda.h>" not in text


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
    "torch": ("bench/torch_gpu.py", "sim/torch_device.py"),
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
