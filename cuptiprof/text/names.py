"""Names on their way to a reader: demangled, and made harmless.

A kernel, region or thread name is whatever a program chose; it may hold escape sequences, line breaks or markup.
"""

from __future__ import annotations

import functools
import re
import unicodedata

from cuptiprof import _core

# C0 and C1 controls, line and paragraph separators, and the marks that reorder text ("Trojan source").
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


@functools.lru_cache(maxsize=1 << 16)
def display_name(name: str, demangle: bool = True) -> str:
    """The name people know a kernel by: demangled unless ``demangle`` is False."""
    return _core.demangle(name) if demangle else name


def escape_name(name: str) -> str:
    """A region's or operator's name as one component of a path."""
    return name.replace("\\", "\\\\").replace("/", "\\/")


def printable(text: str) -> str:
    """``text`` with every control, bidirectional and invisible character as a visible ``\\xNN`` or ``\\uNNNN``."""
    return _UNPRINTABLE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def display_width(text: str) -> int:
    """Terminal cells that ``text`` takes: two for East Asian wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)
