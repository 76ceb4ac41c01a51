"""How long work (import, save, export) tells how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called now and then with the rows done so far and the rows there are; the last call has ``done == total``."""

    def __call__(self, done: int, total: int, /) -> None: ...
