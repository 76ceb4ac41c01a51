"""JSON from outside, checked against a type: the one place where it becomes values of ours."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from cuptiprof.errors import ResultError

T = TypeVar("T")


def checked(value: Any, kind: type[T], what: str, *, hint: str = "") -> T:
    """`value`, as json.loads gives it, as a `kind` (a msgspec.Struct); nothing is converted that is not of its type.

    Args:
        what: what it should be, for the error: "run.json", "line 3: a point".

    Raises:
        ResultError: it is not, with the place in it that is wrong.
    """
    try:
        return msgspec.convert(value, kind, strict=True)
    except (msgspec.ValidationError, RecursionError) as e:
        raise ResultError(f"{what}: {str(e)[:300]}", hint=hint) from None
