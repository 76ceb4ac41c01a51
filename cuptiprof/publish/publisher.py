"""What gives a session's metrics to somebody, from its start to its end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from types import TracebackType

from cuptiprof.publish.session_readings import SessionReadings


class Publisher(ABC):
    """Of one session at a time; may be opened again when it is closed."""

    @abstractmethod
    def open(self, readings: SessionReadings) -> None:
        """The session runs.

        Raises:
            SessionError: it cannot be published this way; the session does not start.
        """

    @abstractmethod
    def close(self) -> None:
        """It ended, and ``readings.read()`` says its last numbers for the last time. May be called twice, and by a forked child."""


class Publishing:
    """Publishers of a session, opened from entering to leaving; may be left twice, and before it was entered.

    Attributes:
        readings: the session's.
    """

    def __init__(self, readings: SessionReadings, publishers: Iterable[Publisher]) -> None:
        self.readings = readings
        self._publishers = tuple(publishers)
        self._opened: list[Publisher] = []

    def __enter__(self) -> Publishing:
        for publisher in self._publishers:
            self._opened.append(publisher)
            publisher.open(self.readings)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for publisher in reversed(self._opened):
            publisher.close()
        self._opened.clear()
