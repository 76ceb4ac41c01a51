"""What a database of another tool has no column for and a reader must know: who wrote it, whether it is simulated, what was lost."""

from __future__ import annotations

from cuptiprof.data.result import Result
from cuptiprof.io.sqlite.own_domains import LOST, PRODUCER, SIMULATED
from cuptiprof.version import __version__


def own_facts(result: Result) -> dict[str, str]:
    """By name, as text."""
    return {
        PRODUCER: f"cuptiprof {__version__}",
        SIMULATED: str(result.simulated).lower(),
        **{LOST + name: str(count) for name, count in result.losses.items() if count},
    }
