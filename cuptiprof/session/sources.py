"""What ``profile(sources=...)`` asks for: where else, beside regions and steps, launches get their names from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from cuptiprof.errors import SessionError
from cuptiprof.text.nearest import nearest

_OFF = 0
LEVELS: dict[str, tuple[str, ...]] = {
    "nvtx": ("full", "launch"),
    "lines": ("launch",),
    "stacks": ("launch",),
}
"""Source -> its levels, the default first. "launch": only what is open when work is launched is known, the cheapest way;
"full": with host times, in the tree of regions."""


@dataclass(frozen=True)
class Sources:
    """Levels as the native session takes them.

    Attributes:
        nvtx: 0 off, 1 launch, 2 full.
        frames: 0 off, 1 the innermost line of the program, 2 the whole Python stack.
    """

    nvtx: int = _OFF
    frames: int = _OFF

    def __bool__(self) -> bool:
        return any(getattr(self, f.name) != _OFF for f in fields(self))


def parse_sources(sources: str | Iterable[str] | Mapping[str, str] | None) -> Sources:
    """Read ``sources=``: a name, several, "all", or a mapping name -> level.

    Raises:
        SessionError: an unknown source, or a level that it does not have.
    """
    if sources is None:
        return Sources()
    if isinstance(sources, str):
        sources = list(LEVELS) if sources == "all" else [sources]
    wanted = dict(sources) if isinstance(sources, Mapping) else dict.fromkeys(sources, "")
    for name, level in wanted.items():
        if name not in LEVELS:
            near = nearest(str(name), LEVELS)
            hint = (
                f"did you mean {near[0]!r}?"
                if near
                else f"one of: {', '.join(LEVELS)}; regions and steps are always known"
            )
            raise SessionError(f"unknown source {name!r} in sources=", hint=hint)
        if level and level not in LEVELS[name]:
            raise SessionError(f"source {name!r} has no level {level!r}", hint=f"one of: {', '.join(LEVELS[name])}")
    nvtx = {"full": 2, "launch": 1}[wanted["nvtx"] or "full"] if "nvtx" in wanted else _OFF
    return Sources(nvtx=nvtx, frames=2 if "stacks" in wanted else 1 if "lines" in wanted else _OFF)
