"""Names of C++ functions."""

from __future__ import annotations

from collections.abc import Iterable

from cuptiprof import _core


def demangle(name: str) -> str:
    """The C++ form of a mangled name ("_Z..."); any other text comes back unchanged."""
    return _core.demangle(name)


def function_base(demangled: str) -> str:
    """ncu's function name: "void at::f<int>(float*)" -> "f". Other text comes back unchanged."""
    return _core.function_base(demangled)


def nearest_names(wanted: str, names: Iterable[str], k: int = 5) -> list[str]:
    """The ``k`` function names nearest to a pattern that matched none; ``names`` may be mangled."""
    return _core.nearest_names(wanted, names, k)
