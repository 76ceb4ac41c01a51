"""What lines of results files hold: each kind of value with its one check, and values as JSON has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import msgspec.structs
import numpy as np

from cuptiprof.errors import ResultError

MAX_TEXT = 2000
MAX_PARAMS = 100
MAX_NUMBER = 1e300  # 1e400 in a file is read as infinity, and 10**400 as an int that no float holds
MAX_SAMPLES = 10_000_000  # what nobody measures is not read into memory

Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
Seconds = Annotated[float, msgspec.Meta(ge=0, lt=1e12)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Series = Annotated[list[float], msgspec.Meta(max_length=MAX_SAMPLES)]
Params = Annotated[dict[Text, Text | int | float | bool | None], msgspec.Meta(max_length=MAX_PARAMS)]


def check_params(params: Mapping[str, object]) -> None:
    """What a type cannot say of :data:`Params`. Raises ResultError."""
    for name, v in params.items():
        if isinstance(v, (int, float)) and not -MAX_NUMBER <= v <= MAX_NUMBER:
            raise ResultError(f"parameter {name[:40]!r} is out of range")


def to_json(value: Any) -> Any:
    """Structs, arrays and mappings as JSON has them; of numbers that it lacks, None: see ``with_nan``."""
    if isinstance(value, msgspec.Struct):
        return {name: to_json(v) for name, v in msgspec.structs.asdict(value).items()}
    if isinstance(value, np.ndarray):
        return [to_json(float(v)) for v in value]
    if isinstance(value, Mapping):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_json(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def with_nan(value: Any, depth: int = 2) -> Any:
    """JSON has no NaN: where numbers are, null is one."""
    if value is None:
        return math.nan
    if isinstance(value, list):
        return [with_nan(v, depth - 1) for v in value] if depth else value
    if isinstance(value, dict):
        return {k: with_nan(v, depth - 1) for k, v in value.items()} if depth else value
    return value
