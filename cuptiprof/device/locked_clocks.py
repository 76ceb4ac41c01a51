"""A GPU's clocks, locked for as long as it is needed and given back however that ends."""

from __future__ import annotations

import atexit
import contextlib
import warnings
from collections.abc import Iterator

from cuptiprof.data.clock_state import ClockReader, ClockTarget
from cuptiprof.errors import CuptiprofError

_locked: list[ClockReader] = []


@contextlib.contextmanager
def locked_clocks(clocks: ClockReader, target: ClockTarget | None) -> Iterator[None]:
    """The SM clock is `target` inside; None: it is left alone. Afterwards it is nobody's: also a lock that stood before is gone.

    Raises:
        BenchError: it cannot be locked.
    """
    if target is None:
        yield
        return
    try:
        _locked.append(clocks)  # before it is so: Ctrl-C may come in between
        try:
            clocks.lock(target)
        except CuptiprofError:
            _locked.remove(clocks)
            raise
        yield
    finally:
        if clocks in _locked:
            _unlock(clocks)


def unlock_all() -> None:
    """For a program that ends in the middle."""
    for clocks in list(_locked):
        _unlock(clocks)


def _unlock(clocks: ClockReader) -> None:
    try:
        clocks.unlock()
    except CuptiprofError as e:
        warnings.warn(f"cuptiprof: {e.message}; {e.hint}", RuntimeWarning, stacklevel=2)
    _locked.remove(clocks)


atexit.register(unlock_all)
