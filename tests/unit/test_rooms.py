"""Which room of the Python package may import which (docs/internals.md). Imports for types and deferred ones count too."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import cuptiprof

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "cuptiprof"

# From the ground up: a room imports those before it.
ROOMS = (
    "errors", "version", "_core", "text", "stats", "data", "filter", "regions", "analysis", "io", "sim", "device", "metrics",
    "counters", "report", "pictures", "job", "page", "export", "watch", "publish", "session", "flight_recorder", "torch_profiler", "bench", "verify", "doctor", "cli", "integrations",
)  # fmt: skip

# Objects that can save and show themselves.
EXCEPTIONS = {
    "data.result": {"filter.kernel_filter", "analysis.counter_values.kernel_counters", "analysis.trees.flame", "analysis.comparison.run_diff", "analysis.comparison.work_groups", "export.formats", "io.perf_script", "io.run_writer",
                    "export.stack_file", "io.rank_place", "report", "report.model", "report.views.key_averages", "pictures.picture", "pictures.run_pictures"},
    "report.model": {"report.render", "report.render.to_html", "report.render.to_json", "report.render.to_pandas"},
}  # fmt: skip

ONLY_IN = {
    "rich": ("report/render/to_rich.py", "cli/"),
    "pyarrow": ("io/", "export/", "job/", "data/tables.py"),
    "torch": ("device/torch_gpu.py", "sim/pytorch/dispatch_mode.py", "torch_profiler/from_torch.py"),
    "matplotlib": ("pictures/",),
    "jinja2": ("page/template.py",),
    "ibis": ("job/",),
    "pyspark": ("job/engines.py",),
    "prometheus_client": ("publish/",),
    "opentelemetry": ("publish/open_telemetry.py",),
    "pynvml": ("device/nvml.py",),
    "lightning": ("integrations/",),
    "pytorch_lightning": ("integrations/",),
    "transformers": ("integrations/",),
    "accelerate": ("integrations/",),
    "IPython": ("integrations/",),
    "fsspec": ("io/remote.py",),
}


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports(path: Path) -> Iterator[str]:
    """Full names of what a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level and node.module, f"{path}: relative import"
            yield from (f"{node.module}.{a.name}" for a in node.names)


def own_imports(path: Path) -> set[str]:
    """Modules of the package (without its name) that a file imports."""
    out = set()
    for name in imports(path):
        if name.startswith("cuptiprof."):
            inside = name.removeprefix("cuptiprof.")
            out.add(inside if inside in MODULES else inside.rpartition(".")[0] or inside)
    return out


ARROWS = {name: own_imports(path) for name, path in MODULES.items()}


@pytest.mark.parametrize("name", [n for n in MODULES if n and "_installed" not in n and n != "__main__"])
def test_rooms_import_those_below(name: str) -> None:
    room = name.partition(".")[0]
    for target in ARROWS[name] - EXCEPTIONS.get(name, set()):
        other = target.partition(".")[0]
        assert ROOMS.index(other) <= ROOMS.index(room), f"{name} imports {target}"


def test_exceptions_are_needed() -> None:
    for name, targets in EXCEPTIONS.items():
        assert targets <= ARROWS[name]


def test_no_circles() -> None:
    arrows = {n: {t for t in ts - EXCEPTIONS.get(n, set()) if t in MODULES and t != n} for n, ts in ARROWS.items() if n}
    while leaves := [n for n, ts in arrows.items() if not ts & arrows.keys()]:
        for n in leaves:
            del arrows[n]
    assert not arrows, "in circles or above one: " + ", ".join(sorted(arrows))


def test_no_module_has_another_ones_name() -> None:
    places = defaultdict(list)
    for name in MODULES:
        if name and not name.endswith("__main__"):
            places[name.rpartition(".")[2]].append(name)
    assert not {n: p for n, p in places.items() if len(p) > 1}


def test_no_class_has_another_ones_name() -> None:
    places = defaultdict(list)
    for name, path in MODULES.items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    assert not {n: p for n, p in places.items() if len(p) > 1}


@pytest.mark.parametrize("library", ONLY_IN)
def test_big_libraries_have_their_place(library: str) -> None:
    for path in MODULES.values():
        if any(name.split(".")[0] == library for name in imports(path)):
            name = str(path.relative_to(PACKAGE))
            assert name.startswith(ONLY_IN[library]), f"{name} imports {library}"


def test_import_is_light() -> None:
    """`import cuptiprof` brings in none of the big libraries and loads no CUDA library."""
    code = (
        "import sys, cuptiprof\n"
        "bad = [m for m in ('torch', 'pyarrow', 'rich', 'pandas', 'polars', 'matplotlib', 'ibis') if m in sys.modules]\n"
        "maps = open('/proc/self/maps').read()\n"
        "print(bad, 'libcuda' in maps or 'libcupti' in maps)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[] False"


def test_public_names() -> None:
    assert dir(cuptiprof) == sorted(cuptiprof.__all__)
    for name in cuptiprof.__all__:
        assert getattr(cuptiprof, name) is not None
    with pytest.raises(AttributeError):
        _ = cuptiprof.nonsense  # type: ignore[attr-defined]
