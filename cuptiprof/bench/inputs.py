"""What a function is called with: arguments of its own, or copies of them in turn, so many that none is in the L2 when its turn comes."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cuptiprof.bench.options import Options
from cuptiprof.errors import BenchError
from cuptiprof.text.nearest import did_you_mean
from cuptiprof.text.units import format_bytes

MAX_COPIES = 2000
"""of arguments: more take longer to make than a flush of the L2 before each sample."""

Function = Callable[..., object]


def split_keywords(
    entrance: str, function: object, args: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[Options, dict[str, Any]]:
    """Keywords of ``bench(f, *args, **keywords)``: options, and what the function is called with.

    Raises:
        TypeError: one that is neither an option nor a parameter of the function, as far as its parameters are known, or that may
            be a slip of an option.
        BenchError: one that is both.
    """
    known = Options.__optional_keys__
    options: Any = {k: v for k, v in keywords.items() if k in known}
    given = {k: v for k, v in keywords.items() if k not in known}
    named, takes_any = parameters_of(function)
    # A function without arguments from here may have defaults of any name: `lambda x=x, dtype=dtype: f(x, dtype)`.
    if (args or given) and (both := [k for k in options if k in named]):
        raise BenchError(
            f"{both[0]}= is an option of {entrance}() and a parameter of {name_of(function)}",
            hint=f"a lambda tells them apart: {entrance}(lambda: {name_of(function)}(..., {both[0]}=...))",
        )
    for name in given:
        guess = did_you_mean(name, known)
        if name not in named and (guess or not takes_any):
            raise TypeError(f"{entrance}() got an unexpected keyword argument {name!r}{guess}")
    return options, given


def parameters_of(function: object) -> tuple[frozenset[str], bool]:
    """Names of the parameters that can be given by keyword, and whether it may take others (also where it cannot be told)."""
    try:
        parameters = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):  # of a built-in
        return frozenset(), callable(function)
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return frozenset(p.name for p in parameters if p.kind in by_name), any(p.kind == p.VAR_KEYWORD for p in parameters)


def name_of(function: object) -> str:
    """As reports call it."""
    return str(getattr(function, "__name__", "") or type(function).__name__)


def bind(function: Function, args: Sequence[Any], keywords: Mapping[str, Any]) -> Function:
    """`function` with its arguments."""
    if not args and not keywords:
        return function
    bound = functools.partial(function, *args, **keywords)
    functools.update_wrapper(bound, function)
    return bound


def rotating(
    function: Function, args: Sequence[Any], keywords: Mapping[str, Any], bytes_between: int
) -> tuple[Function, int]:
    """`function` with the next copy of its arrays in each call, and how many there are.

    Args:
        bytes_between: so much of the others comes between two uses of one copy, and drives it out of the L2.

    Raises:
        BenchError: there are no arrays among the arguments, or they are so small that it would take too many copies.
    """
    size = _bytes_in((args, keywords))
    if not size:
        raise BenchError(
            'l2="rotate" needs arrays among the arguments: bench(f, x, y)', hint='l2="cold" flushes the cache instead'
        )
    count = math.ceil(bytes_between / size) + 1
    if count > MAX_COPIES:
        raise BenchError(
            f'arguments of {format_bytes(size)} would need {count:,} copies for l2="rotate"',
            hint='l2="cold" flushes the cache instead',
        )
    copies = [_copied((tuple(args), dict(keywords))) for _ in range(count - 1)]
    turns = itertools.cycle([(tuple(args), dict(keywords)), *copies])

    @functools.wraps(function)
    def call() -> object:
        own_args, own_keywords = next(turns)
        return function(*own_args, **own_keywords)

    return call, count


def _is_array(value: object) -> bool:
    """Of a device: PyTorch's, CuPy's, JAX's; NumPy's lie in the host's memory."""
    if type(value).__module__.partition(".")[0] == "numpy" or isinstance(value, (bytes, bytearray, memoryview)):
        return False
    return isinstance(getattr(value, "nbytes", None), int) and (hasattr(value, "clone") or hasattr(value, "copy"))


def _bytes_in(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(map(_bytes_in, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(_bytes_in, value))
    return int(value.nbytes) if _is_array(value) else 0


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _copied(v) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):  # a named tuple
        return type(value)(*map(_copied, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(_copied, value))
    if not _is_array(value):
        return value
    if not hasattr(value, "clone"):
        return value.copy()
    clone = value.detach().clone()
    return clone.requires_grad_(True) if value.requires_grad else clone
