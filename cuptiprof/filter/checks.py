"""What a user gives a filter, checked: each function raises FilterError for what it cannot take."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

from cuptiprof.errors import FilterError

U32_MAX = 0xFFFFFFFF
Texts = str | Iterable[str] | None
Ids = int | Iterable[int] | None
Dims = int | Sequence[int]


def dims(what: str, value: Dims) -> tuple[int, int, int]:
    """(x, y, z) of a size given as up to three integers."""
    try:
        given = tuple(value) if isinstance(value, Sequence) else (value,)
        numbers = tuple(operator.index(v) for v in given)
    except TypeError:
        raise FilterError(
            f"{what}={value!r} is not a size", hint="Give up to three integers, e.g. (256, 1, 1)."
        ) from None
    if not 1 <= len(numbers) <= 3 or any(not 0 <= n < 2**31 for n in numbers):
        raise FilterError(f"{what}={value!r} is not a size", hint="Give up to three integers, e.g. (256, 1, 1).")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def texts(what: str, value: Texts) -> list[str]:
    """One pattern or several, as a list; none for None."""
    if value is None:
        return []
    items = [value] if isinstance(value, str) else list(value)
    for item in items:
        if not isinstance(item, str):
            raise FilterError(f"{what}: {item!r} is not text", hint="Give one pattern or a list of patterns.")
    if not items:
        raise FilterError(f"{what}: an empty list selects nothing", hint="Give None for no restriction.")
    return items


def ids(what: str, value: Ids) -> list[int]:
    """One 32-bit number or several, as a list; none for None."""
    if value is None:
        return []
    items = list(value) if isinstance(value, Iterable) else [value]
    if not items:
        raise FilterError(f"{what}: an empty list selects nothing", hint="Give None for no restriction.")
    return [integer(what, item, U32_MAX) for item in items]


def integer(what: str, value: object, largest: int = 2**63 - 1) -> int:
    """A whole number from 0 to `largest`."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise FilterError(f"{what}={value!r} is not an integer", hint="Give a whole number.") from None
    if not 0 <= number <= largest:
        raise FilterError(f"{what}={number} is out of range", hint=f"Give a number from 0 to {largest}.")
    return number
