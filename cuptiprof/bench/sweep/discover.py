"""Finds the benchmarks of a file."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from pathlib import Path

from cuptiprof.bench.sweep.benchmark import Benchmark, forget, registered
from cuptiprof.errors import BenchError
from cuptiprof.text.nearest import did_you_mean


def find_benchmarks(target: str) -> tuple[Benchmark, ...]:
    """The benchmarks of ``FILE`` or the one of ``FILE::NAME``, in the order of the text. The file is run, as by an import.

    Raises:
        BenchError: there is no such file or benchmark, the file raises, or two benchmarks have one name.
    """
    file, separator, name = target.partition("::")
    path = Path(file)
    if not path.is_file():
        near = [p.name for p in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise BenchError(f"no such file: {file}{did_you_mean(path.name, near)}")
    found = registered(_load(path))
    if not found:
        raise BenchError(f"{file} has no benchmarks", hint="put @cuptiprof.benchmark(params={...}) on a function")
    names = [b.name for b in found]
    if twice := [n for n in names if names.count(n) > 1]:
        raise BenchError(f"{file} has two benchmarks called {twice[0]!r}", hint="name= tells them apart")
    if not separator:
        return found
    chosen = tuple(b for b in found if b.name == name)
    if not chosen:
        raise BenchError(
            f"{file} has no benchmark {name!r}{did_you_mean(name, names)}", hint=f"it has: {', '.join(names)}"
        )
    return chosen


def _load(path: Path) -> str:
    """Import a file under its own name, or one beside it if that is taken; returns the name of the module."""
    path = path.resolve()
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as for a script: it may import what lies beside it
    name = path.stem
    there = sys.modules.get(name)
    if there is not None and getattr(there, "__file__", None) != str(path):
        name = f"cuptiprof_benchmarks_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BenchError(f"{path} is no Python file", hint="benchmarks are in .py files, results in .jsonl")
    module = importlib.util.module_from_spec(spec)
    forget(name)
    sys.modules[name] = module  # dataclasses and Triton look a function's module up
    try:
        spec.loader.exec_module(module)
    except Exception as e:
        del sys.modules[name]
        raise BenchError(f"{path.name} cannot be loaded: {_own_part(e, path)}") from e
    return name


def _own_part(error: Exception, path: Path) -> str:
    """The error, and the lines of the file that led to it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if os.path.realpath(f.filename) == str(path)]
    lines = "".join(f"\n  {path.name}:{f.lineno}: {f.line}" for f in frames)
    if isinstance(error, SyntaxError) and error.lineno:
        lines = f"\n  {os.path.basename(error.filename or path.name)}:{error.lineno}"
    return f"{type(error).__name__}: {error}{lines}"
