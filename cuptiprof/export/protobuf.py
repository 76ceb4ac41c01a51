"""Messages in protobuf's encoding (https://protobuf.dev/programming-guides/encoding), for formats of which we write little."""

from __future__ import annotations

from collections.abc import Iterable

Field = tuple[int, "int | str | bytes"]
"""number of the field, and its value: an integer, text, or a message (or packed integers)"""


def message(*fields: Field) -> bytes:
    """A message of varints, texts and messages."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            data = value.encode("utf-8", "backslashreplace") if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return bytes(out)


def packed(values: Iterable[int]) -> bytes:
    """A repeated field of integers."""
    return b"".join(map(varint, values))


def varint(value: int) -> bytes:
    """An integer of 64 bits; negative ones as int64 has them."""
    out = bytearray()
    value &= (1 << 64) - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
