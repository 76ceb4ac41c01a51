"""Sizes as people write them."""

from __future__ import annotations

import re

_FACTORS = {"": 1, "B": 1}
for _i, _letter in enumerate("KMGT", 1):
    _FACTORS[_letter] = _FACTORS[_letter + "B"] = 1000**_i
    _FACTORS[_letter + "IB"] = 1024**_i


def parse_bytes(text: str | int, what: str = "size") -> int:
    """Bytes from an int or a text such as ``"256 MB"`` (powers of 1000) or ``"64 MiB"`` (powers of 1024).

    Raises:
        ValueError: not a size, or not positive.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        value = float(text)
    else:
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", str(text))
        factor = _FACTORS.get(match.group(2).upper()) if match else None
        if match is None or factor is None:
            raise ValueError(f'{what}: cannot read {text!r} as a size; write for example "256 MB"')
        value = float(match.group(1)) * factor
    if not 0 < value < 2**63:
        raise ValueError(f"{what}: {text!r} is out of range")
    return int(value)
