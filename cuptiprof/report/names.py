"""Kernel names for people."""

from __future__ import annotations

import re
from functools import lru_cache

from cuptiprof import _core

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@lru_cache(maxsize=65536)
def display_name(name: str, demangle: bool = True) -> str:
    """The demangled name, control characters made visible (a name is whatever a program chose)."""
    text = _core.demangle(name) if demangle else name
    return _CONTROL.sub(lambda m: f"\\x{ord(m.group()):02x}", text)
