"""Names of kernels and regions as values of labels: any program may choose them, and a monitoring system keeps them for years."""

from __future__ import annotations

import hashlib

from cuptiprof.text.names import display_name, printable

LONGEST = 300
"""Characters of a name; longer ones are cut, and end in a number that tells them apart."""

_SUMMED = 8000
"""Sums are of the first 8 KB of a name."""


def kernel_label(name: str) -> str:
    """A kernel's name, demangled, in one line of visible characters."""
    return _cut(display_name(name))


def region_label(name: str, *, none: str) -> str:
    """A region's path; `none`: what stands for no region."""
    return _cut(name) if name else none


def _cut(name: str) -> str:
    name = name[:_SUMMED]
    shown = printable(name[: 4 * LONGEST])
    if len(name) <= 4 * LONGEST and len(shown) <= LONGEST:
        return shown
    number = hashlib.blake2s(name.encode(errors="surrogatepass"), digest_size=4).hexdigest()
    return f"{shown[: LONGEST - 12]}...#{number}"
