"""Who is told of a session while it runs: a function of the program, ``cuptiprof top``, Prometheus, OpenTelemetry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cuptiprof import _core
from cuptiprof.device.devices import Device
from cuptiprof.session.held import Held

if TYPE_CHECKING:
    from cuptiprof.publish.publisher import Publisher, Publishing
    from cuptiprof.session.visible_readings import VisibleReadings
    from cuptiprof.watch.live_figures import LiveFigures


@dataclass(frozen=True)
class Onlookers:
    """What they need is imported where there are any.

    Attributes:
        live: another process may ask. on_live: called once a second. publishers: of metrics.
    """

    live: bool
    on_live: Callable[[LiveFigures], object] | None
    publishers: tuple[Publisher, ...]

    @property
    def any(self) -> bool:
        """Whether the session makes its running sums."""
        return self.live or self.on_live is not None or bool(self.publishers)

    def show(self, session: _core.Session, device: Device, budget: int, opened: Held) -> None:
        """To those who watch, until `opened` is closed."""
        if not self.live and self.on_live is None:
            return
        from cuptiprof.watch.live_feed import LiveFeed
        from cuptiprof.watch.live_figures import LiveSubject

        subject = LiveSubject(device.spec, device.simulated, budget)
        opened.enter(LiveFeed(session, subject, on_live=self.on_live, serve=self.live))

    def publish(
        self, session: _core.Session, device: Device, budget: int, system: VisibleReadings | None, opened: Held
    ) -> Publishing | None:
        """To those who monitor, until `opened` is closed; None: there are none."""
        if not self.publishers:
            return None
        from cuptiprof.publish.publisher import Publishing
        from cuptiprof.publish.session_readings import SessionReadings
        from cuptiprof.watch.live_figures import LiveSubject

        subject = LiveSubject(device.spec, device.simulated, budget)
        publishing = Publishing(SessionReadings(session, subject, system), self.publishers)
        opened.enter(publishing)
        return publishing
