"""What ``profile(sources=...)`` asks for: where else, beside regions and steps, launches get their names from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from cuptiprof.errors import SessionError
from cuptiprof.text.nearest import nearest

_OFF = 0
LEVELS: dict[str, tuple[str, ...]] = {
    "nvtx": ("full", "launch"),
    "lines": ("launch",),
    "stacks": ("launch",),
    "modules": ("launch",),
    "operators": ("full", "launch"),
}
"""Source -> its levels, the default first. "launch": only what is open when work is launched is known, the cheapest way;
"full": with host times, in the tree of regions."""


@dataclass(frozen=True)
class Sources:
    """Levels as the native session takes them.

    Attributes:
        nvtx: 0 off, 1 launch, 2 full.
        frames: 0 off, 1 the innermost line of the program, 2 the whole Python stack.
        user_packages: installed packages whose lines count as the program's own.
        modules: PyTorch's.
        operators: of PyTorch, as ``nvtx``.
        shapes: of the inputs of operators, and their types.
    """

    nvtx: int = _OFF
    frames: int = _OFF
    user_packages: tuple[str, ...] = ()
    modules: bool = False
    operators: int = _OFF
    shapes: bool = False

    def __bool__(self) -> bool:
        return any(getattr(self, f.name) != _OFF for f in fields(self) if f.name not in ("user_packages", "shapes"))


SourcesArgument = str | Iterable[str] | Mapping[str, "str | Mapping[str, Any]"] | None


def parse_sources(sources: SourcesArgument) -> Sources:
    """Read ``sources=``: a name, several, "all", or a mapping name -> level or options ({"lines": {"packages": ["torch"]},
    "operators": {"shapes": True}}).

    Raises:
        SessionError: an unknown source, or a level or an option that it does not have.
    """
    if sources is None:
        return Sources()
    if isinstance(sources, str):
        sources = list(LEVELS) if sources == "all" else [sources]
    wanted = dict(sources) if isinstance(sources, Mapping) else dict.fromkeys(sources, "")
    packages: list[str] = []
    shapes = False
    for name, level in wanted.items():
        if name not in LEVELS:
            near = nearest(str(name), LEVELS)
            hint = (
                f"did you mean {near[0]!r}?"
                if near
                else f"one of: {', '.join(LEVELS)}; regions and steps are always known"
            )
            raise SessionError(f"unknown source {name!r} in sources=", hint=hint)
        if isinstance(level, Mapping) and name in _OF_FRAMES:
            packages += _packages(name, level)
        elif isinstance(level, Mapping) and name == "operators":
            wanted[name], shapes = _operators(level)
        elif level and level not in LEVELS[name]:
            raise SessionError(f"source {name!r} has no level {level!r}", hint=f"one of: {', '.join(LEVELS[name])}")
    nvtx, operators = (
        _LEVEL[str(wanted[name]) or "full"] if name in wanted else _OFF for name in ("nvtx", "operators")
    )
    frames = 2 if "stacks" in wanted else 1 if "lines" in wanted else _OFF
    return Sources(
        nvtx=nvtx,
        frames=frames,
        user_packages=tuple(packages),
        modules="modules" in wanted,
        operators=operators,
        shapes=shapes,
    )


FULL = 2
_LEVEL = {"full": FULL, "launch": 1}


def _operators(options: Mapping[str, Any]) -> tuple[str, bool]:
    unknown = sorted(set(options) - {"level", "shapes"})
    if unknown:
        raise SessionError(
            f"source 'operators' has no option {unknown[0]!r}", hint='for example {"level": "full", "shapes": True}'
        )
    level, shapes = options.get("level", "full"), options.get("shapes", False)
    if level not in LEVELS["operators"]:
        raise SessionError(
            f"source 'operators' has no level {level!r}", hint=f"one of: {', '.join(LEVELS['operators'])}"
        )
    if shapes not in (True, False):
        raise SessionError(f"source 'operators': shapes is True or False: {shapes!r}")
    if shapes and level == "launch":
        raise SessionError(
            "source 'operators' has no shapes at the level \"launch\"",
            hint='shapes are in the table operators, which the level "full" writes',
        )
    return level, bool(shapes)


_OF_FRAMES = ("lines", "stacks")


def _packages(name: str, options: Mapping[str, Any]) -> list[str]:
    unknown = sorted(set(options) - {"packages"})
    given = options.get("packages", ())
    if unknown:
        raise SessionError(
            f"source {name!r} has no option {unknown[0]!r}", hint='{"packages": ["torch"]} is the one it has'
        )
    packages = [given] if isinstance(given, str) else list(given)
    if not all(isinstance(package, str) for package in packages):
        raise SessionError(
            f"source {name!r}: packages are names: {given!r}", hint='for example {"packages": ["torch"]}'
        )
    return packages
