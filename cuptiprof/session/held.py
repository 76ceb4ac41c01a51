"""What a session holds of the program while it runs."""

from __future__ import annotations

from contextlib import AbstractContextManager


class Held:
    """Context managers, entered until :meth:`close`, which leaves the last one first.

    ``contextlib.ExitStack`` forgets what it is leaving when Ctrl-C comes just then. Here whoever closes again leaves all of them again,
    so each must allow to be left twice, and before it was entered.
    """

    def __init__(self) -> None:
        self._managers: list[AbstractContextManager[object]] = []

    def enter(self, manager: AbstractContextManager[object]) -> None:
        """Enter it; left with the others, also if entering raises."""
        self._managers.append(manager)
        manager.__enter__()

    def close(self) -> None:
        """Leave them all."""
        for manager in reversed(self._managers):
            manager.__exit__(None, None, None)
        self._managers.clear()
