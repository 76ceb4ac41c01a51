"""What a benchmark function gives to be timed, and how it says that a point is none of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn


@dataclass(frozen=True)
class Case:
    """A function to be timed that needs more than itself.

    Attributes:
        setup: called before each sample, outside of the time.
        check: what the function has to give, once before it is measured: the result, or a function of the same arguments that
            gives it. Floating-point results are the same within the tolerance of their type (``torch.testing.assert_close``).
    """

    function: Callable[..., object]
    setup: Callable[[], object] | None = None
    check: Any = None


class SkipPoint(Exception):
    """See :func:`skip`."""


def skip(reason: str) -> NoReturn:
    """Leave a point of a sweep out, with a reason: it is a row without a time, and no failure. For a benchmark function to call."""
    raise SkipPoint(reason)
