"""Plans in memory and on disk: the same set of metrics is planned once."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from cuptiprof import _core
from cuptiprof.device.planning import plan_cache_dir

FOLDER_BYTES = 64 << 20
"""What the files of a folder may take together, unless told otherwise."""
_LARGEST_FILE = 32 << 20  # bytes
_MOST_IN_MEMORY = 256  # a process uses a handful of sets
_SUFFIX = ".plan"
_DIGEST_BYTES = hashlib.sha256().digest_size


class _Group(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A pass group as files hold it."""

    metrics: Annotated[list[str], msgspec.Meta(min_length=1)]
    image: Annotated[bytes, msgspec.Meta(min_length=1)]
    passes: Annotated[int, msgspec.Meta(ge=1, lt=2**32)]


class _File(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A plan as files hold it, behind the SHA-256 of its bytes. `key`: everything that it depends on."""

    key: str
    groups: list[_Group]


_decoder = msgspec.msgpack.Decoder(_File)

# Of the process: sessions come and go.
_memory: dict[tuple[str, str], list[_core.PassGroup]] = {}
_memory_lock = threading.Lock()


class CachedPlanner(_core.MetricPlanner):
    """A planner that remembers its plans; any number of threads and processes may share a folder.

    Args:
        library: the libcupti that plans.
        chip: as ``MetricPlanner``, so `sampling` and `availability`.
        cache_dir: where plans are kept; "": in memory only; None: :func:`cuptiprof.device.planning.plan_cache_dir`.
            Never of the simulated device, whose limits can change from one planner to the next.
        cache_bytes: what the files there may take together, bytes; the oldest go first.
    """

    def __init__(
        self,
        library: _core.CuptiLibrary,
        chip: str,
        sampling: bool = False,
        availability: bytes | None = None,
        cache_dir: str | None = None,
        cache_bytes: int = FOLDER_BYTES,
    ) -> None:
        super().__init__(library, chip, sampling, availability)
        self._folder = plan_cache_dir() if cache_dir is None else cache_dir
        self._bytes = cache_bytes
        self._simulated = library.simulated
        self._depends_on = [
            chip,
            str(library.version),
            library.path,  # where CUPTI itself cannot plan, the library beside it does, with other passes
            "sampling" if sampling else "range",
            hashlib.sha256(availability or b"").hexdigest(),
        ]

    def plan(self, metrics: Sequence[str]) -> list[_core.PassGroup]:
        return self._remembered("plan", metrics, super().plan)

    def one_pass_groups(self, metrics: Sequence[str]) -> list[_core.PassGroup]:
        return self._remembered("one-pass", metrics, super().one_pass_groups)

    def _remembered(
        self, kind: str, metrics: Sequence[str], make: Callable[[Sequence[str]], list[_core.PassGroup]]
    ) -> list[_core.PassGroup]:
        """The plan of these metrics: in memory, on disk, or made now and kept in both."""
        names = sorted(set(metrics))
        if self._simulated or not names:
            return make(names)
        key = "\n".join([kind, *self._depends_on, *names])
        with _memory_lock:
            known = _memory.get((self._folder, key))
        if known is None:
            known = _read(self._folder, key, names)
            if known is None:
                known = make(names)
                _write(self._folder, key, known, self._bytes)
            with _memory_lock:
                if len(_memory) >= _MOST_IN_MEMORY:
                    _memory.clear()
                _memory[self._folder, key] = known
        return list(known)


def _name(key: str) -> str:
    """Of the file; the whole key is in it."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32] + _SUFFIX


def _read(folder: str, key: str, names: Sequence[str]) -> list[_core.PassGroup] | None:
    """None: no such file, a damaged one, or one that is not about these metrics, each once."""
    data = _read_own_file(os.path.join(folder, _name(key))) if folder else None
    if data is None or hashlib.sha256(data[_DIGEST_BYTES:]).digest() != data[:_DIGEST_BYTES]:
        return None
    try:
        file = _decoder.decode(memoryview(data)[_DIGEST_BYTES:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if file.key != key or sorted(m for g in file.groups for m in g.metrics) != list(names):
        return None
    return [_core.PassGroup(g.metrics, g.image, g.passes) for g in file.groups]


def _read_own_file(path: str) -> bytes | None:
    """None: it cannot be read, or somebody else owns it or could have written it: what it says goes to the driver."""
    try:
        # NONBLOCK: a pipe of that name must not hang.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    with os.fdopen(fd, "rb") as file:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o022:
            return None
        if about.st_size > _LARGEST_FILE:
            return None
        with suppress(OSError):
            return file.read(_LARGEST_FILE)
    return None


def _write(folder: str, key: str, groups: Sequence[_core.PassGroup], folder_bytes: int) -> None:
    """Whole or not at all; that it cannot be written is no error, the plan is made again."""
    if not folder:
        return
    with suppress(OSError, ValueError):  # a path that is no UTF-8 is one
        body = msgspec.msgpack.encode(_File(key, [_Group(g.metrics, g.image, g.passes) for g in groups]))
        if _DIGEST_BYTES + len(body) > min(folder_bytes, _LARGEST_FILE):
            return
        os.makedirs(os.path.dirname(folder) or ".", exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        # Made with mode 0600; a process that is killed leaves a name that trimming knows.
        fd, temporary = tempfile.mkstemp(prefix=_name(key) + ".", dir=folder)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(hashlib.sha256(body).digest())
                file.write(body)
            os.replace(temporary, os.path.join(folder, _name(key)))
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        _trim(Path(folder), folder_bytes)


def _trim(folder: Path, most: int) -> None:
    """Removes the oldest plans, and what a killed process left half written, until the rest takes at most `most` bytes."""
    files = []
    for path in folder.iterdir():
        if _SUFFIX in path.name:
            with suppress(FileNotFoundError):
                about = path.stat()
                files.append((about.st_mtime_ns, path, about.st_size))
    total = sum(size for _, _, size in files)
    for _, path, size in sorted(files):
        if total <= most:
            break
        path.unlink(missing_ok=True)
        total -= size
