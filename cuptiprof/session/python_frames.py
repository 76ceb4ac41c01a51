"""Whose code a frame of Python is, and whether frames can be read at all."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import FrameType

from cuptiprof import _core
from cuptiprof.errors import SessionError
from cuptiprof.session.sources import Sources
from cuptiprof.text.nearest import nearest

_GENERATED = ("<frozen ", "<__array_function__ internals>", "<eval_with_key>", "<attrs generated ")
"""What the names of code begin with that no user wrote: of the interpreter, NumPy, torch.fx and attrs."""


RUNNERS = ("cuptiprof", "pytest", "torch", "ipykernel_launcher", "IPython", "coverage", "pdb", "unittest")
"""What ``python -m`` runs that runs the user's program."""


def frame_origins(sources: Sources) -> _core.FrameOrigins:
    """For a session of these sources; nothing where they have no frames.

    Raises:
        SessionError: frames cannot be read, or there is no such package.
    """
    if sources.frames or sources.modules:
        check_frames()
    if not sources.frames:
        return _core.FrameOrigins(packages=[], user=[])
    return _core.FrameOrigins(packages=package_prefixes(), user=user_prefixes(sources.user_packages))


def user_code() -> Callable[[str], bool]:
    """Says of a file's name whether its code is the user's, for stacks that others read."""
    installed, users = tuple(package_prefixes()), tuple(user_prefixes(()))
    return lambda file: (
        file.startswith(users) or not (file.startswith(installed) or "site-packages" in file or file.startswith("<"))
    )


def package_prefixes() -> list[str]:
    """What the file names of the standard library, of installed packages and of cuptiprof begin with; packages of other
    environments are told by ``site-packages`` in their path."""
    paths = sysconfig.get_paths()
    folders = [paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [
        *getattr(site, "getsitepackages", list)(),
        *([site.getusersitepackages()] if site.ENABLE_USER_SITE else []),
    ]
    folders.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return sorted({*_as_prefixes(folders), *_GENERATED})


def user_prefixes(packages: Iterable[str]) -> list[str]:
    """What the file names of these installed packages begin with, and those of the program itself, wherever it lies.

    Raises:
        SessionError: there is no such package.
    """
    places: list[str] = []
    for name in packages:
        spec = _spec(name)
        if spec is None:
            near = nearest(name, sorted({m.partition(".")[0] for m in sys.modules}))
            raise SessionError(
                f"no package {name!r}, whose frames were to count as the user's",
                hint=f"did you mean {near[0]!r}?" if near else "give names as in an import",
            )
        places += spec.submodule_search_locations or ([spec.origin] if spec.origin else [])
    main = getattr(sys.modules.get("__main__"), "__spec__", None)  # python -m package.train
    if isinstance(main, ModuleSpec) and main.name.partition(".")[0] not in RUNNERS:
        spec = _spec(main.name.partition(".")[0])
        places += (spec.submodule_search_locations if spec else None) or ([main.origin] if main.origin else [])
    return sorted(set(_as_prefixes(places)))


def _spec(name: str) -> ModuleSpec | None:
    try:
        return find_spec(name)
    except (ImportError, AttributeError, ValueError):
        return None


def _as_prefixes(places: Iterable[str]) -> list[str]:
    out = []
    for place in places:
        for path in {place, os.path.realpath(place)}:
            out.append(path if os.path.isfile(path) else os.path.join(path, ""))
    return out


@lru_cache(maxsize=1)
def check_frames() -> None:
    """Try it once: what is read of a small program must be what Python says.

    Raises:
        SessionError: it is not, or frames cannot be read in this Python.
    """
    if not (_core.can_read_frames() and all(read == said for read, said in _tried())):
        raise SessionError(
            f"the frames of this Python ({sys.version.split()[0]}) cannot be read",
            hint='leave "lines", "stacks" and "modules" out of sources=; docs/python-lines.md says which Pythons can be read',
        )


_Lines = list[tuple[str, str, int]]


def _tried() -> list[tuple[_Lines, _Lines]]:
    """Innermost frames as a launch would see them, and as Python says they are: of a function, a generator, a comprehension
    and a class body."""

    def here() -> tuple[_Lines, _Lines]:
        return _core.read_frames()[:_LOOKED_AT], _said(sys._getframe())

    def generator() -> Iterator[tuple[_Lines, _Lines]]:
        yield here()
        yield here()

    class Body:
        tried = here()

    return [here(), *generator(), *[here() for _ in range(2)], Body.tried]


_LOOKED_AT = 4  # frames


def _said(frame: FrameType | None) -> _Lines:
    out: _Lines = []
    while frame is not None and len(out) < _LOOKED_AT:
        code = frame.f_code
        names = (code.co_filename, getattr(code, "co_qualname", code.co_name))
        file, function = (name.encode("utf-8", "backslashreplace").decode() for name in names)
        out.append((file, function, frame.f_lineno or 0))
        frame = frame.f_back
    return out
