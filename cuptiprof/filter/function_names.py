"""Names of C++ functions."""

from __future__ import annotations

from cuptiprof import _core


def demangle(name: str) -> str:
    """The C++ form of a mangled name ("_Z..."); any other text comes back unchanged."""
    return _core.demangle(name)


def function_base(demangled: str) -> str:
    """ncu's function name: "void at::f<int>(float*)" -> "f". Other text comes back unchanged."""
    return _core.function_base(demangled)
