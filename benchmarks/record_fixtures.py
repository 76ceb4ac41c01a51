"""Records what a device gives into small files that tests can read without it: python -m benchmarks.record_fixtures --out DIR

``DIR/<chip>-cupti<version>/``: raw activity buffers, a counter-data image of ranges and one of PM samples, the
counter-availability images, and ``fixture.json`` with what they mean: CUPTI version, metric lists, and the values read at
the time by other code than our decoder's. At most 2 MB together. What cannot be recorded is named there with the reason.
"""

from __future__ import annotations

import ctypes
import json
import struct
from collections.abc import Callable
from ctypes import POINTER, c_size_t, c_uint8, c_uint32, c_void_p
from pathlib import Path
from typing import Any

from benchmarks.common import arguments
from benchmarks.record_counters import write_compressed
from cuptiprof import _core

LIMIT_BYTES = 2 << 20
BUFFER_BYTES = 32 << 10
MEMCPY, MEMSET, RUNTIME, DEVICE, CONTEXT, KERNEL, STREAM, SYNCHRONIZATION = 1, 2, 5, 8, 9, 10, 37, 38
KINDS = (DEVICE, CONTEXT, KERNEL, MEMCPY, MEMSET, RUNTIME, STREAM, SYNCHRONIZATION)

# (column, offset, struct format) of a record's stable fields; columns as in our tables.
FIELDS: dict[int, tuple[str, tuple[tuple[str, int, str], ...]]] = {
    KERNEL: ("kernels", (("start", 16, "Q"), ("end", 24, "Q"), ("device", 40, "I"), ("context", 44, "I"), ("stream", 48, "I"), ("grid_x", 52, "i"), ("grid_y", 56, "i"), ("block_x", 64, "i"), ("correlation_id", 92, "I"), ("name", 104, "Q"), ("graph_node_id", 144, "Q"))),
    MEMCPY: ("memcpys", (("bytes", 8, "Q"), ("start", 16, "Q"), ("end", 24, "Q"), ("correlation_id", 44, "I"))),
    MEMSET: ("memsets", (("bytes", 8, "Q"), ("start", 16, "Q"), ("end", 24, "Q"))),
    RUNTIME: ("api_calls", (("cbid", 4, "I"), ("start", 8, "Q"), ("end", 16, "Q"), ("thread", 28, "I"), ("correlation_id", 32, "I"), ("return_value", 36, "I"))),
}  # fmt: skip


class BufferRecorder:
    """Collects raw activity buffers through ctypes, beside nothing else of ours."""

    def __init__(self, library: str) -> None:
        self._lib = ctypes.CDLL(library)
        self._out: dict[int, Any] = {}
        self.completed: list[bytes] = []
        request = ctypes.CFUNCTYPE(None, POINTER(c_void_p), POINTER(c_size_t), POINTER(c_size_t))
        complete = ctypes.CFUNCTYPE(None, c_void_p, c_uint32, c_void_p, c_size_t, c_size_t)
        self._callbacks = request(self._requested), complete(self._completed)

    def _requested(self, buffer: Any, size: Any, max_records: Any) -> None:
        memory = (c_uint8 * BUFFER_BYTES)()
        address = ctypes.addressof(memory)
        self._out[address] = memory
        buffer[0], size[0], max_records[0] = address, BUFFER_BYTES, 0

    def _completed(self, context: Any, stream: int, buffer: int, size: int, valid: int) -> None:
        if valid:
            self.completed.append(bytes(memoryview(self._out[buffer])[:valid]))
        # The memory stays: a library may keep a pointer to it until the process ends.

    def _call(self, function: str, *args: Any) -> None:
        if (rc := getattr(self._lib, function)(*args)) != 0:
            raise OSError(f"{function} returned {rc}")

    def record(self, work: Callable[[], None]) -> list[bytes]:
        """The buffers that `work` filled. Raises OSError with CUPTI's result code."""
        self._call("cuptiActivityRegisterCallbacks", *self._callbacks)
        on = []
        try:
            for kind in KINDS:
                self._call("cuptiActivityEnable", kind)
                on.append(kind)
            work()
        finally:
            for kind in on:
                self._lib.cuptiActivityDisable(kind)
        self._call("cuptiActivityFlushAll", 0)
        return self.completed


def values_of(library: Any, buffers: list[bytes], strings: list[bytes]) -> dict[str, dict[str, list[Any]]]:
    """{table: {column: values}} of detached buffers, read at fixed offsets in Python: not by our decoder."""
    out: dict[str, dict[str, list[Any]]] = {}
    for buffer in buffers:
        for kind, at in library.record_kinds(buffer, len(buffer)):
            if kind not in FIELDS:
                continue
            table, fields = FIELDS[kind]
            for column, offset, code in fields:
                (value,) = struct.unpack_from(code, buffer, at + offset)
                if column == "name":
                    value = strings[value - 1].decode() if value else ""
                out.setdefault(table, {}).setdefault(column, []).append(value)
    return out


def record_buffers(library: Any, work: Callable[[], None], folder: Path) -> dict[str, Any]:
    """Writes ``buffers.bin.gz``; returns its description and values."""
    raw = BufferRecorder(library.path).record(work)
    buffers: list[bytes] = []
    strings: list[bytes] = []
    for buffer in raw:
        detached, strings = _core.detach_strings(library, buffer, strings)
        buffers.append(detached)
    write_compressed(folder / "buffers.bin.gz", b"".join(buffers))
    return {
        "sizes": [len(b) for b in buffers],
        "strings": [s.decode() for s in strings],
        "values": values_of(library, buffers, strings),
    }


def record(device: str, out: Path) -> Path:
    """Everything into a folder under `out`.

    Raises:
        ValueError: more than 2 MB came together; nothing is left.
    """
    from benchmarks import record_counters, recorded_work
    from cuptiprof.device.devices import open_device

    opened = open_device(device)
    library = opened.library
    run = recorded_work.work(device)
    run()  # the first time allocates and compiles
    chip = record_counters.chip_name(device, library.path)
    folder = out / f"{'sim' if library.simulated else chip}-cupti{library.version}"
    folder.mkdir(parents=True, exist_ok=True)
    data: dict[str, Any] = {
        "format": 1,
        "chip": chip,
        "simulated": library.simulated,
        "cupti_version": library.version,
        "driver_version": library.driver_version,
        "not_recorded": {},
    }
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "buffers": lambda: record_buffers(library, run, folder),
        "ranges": lambda: record_counters.ranges(device, library.path, chip, run, folder),
        "samples": lambda: record_counters.samples(device, library.path, chip, run, folder),
        "availability": lambda: record_counters.availability(device, library.path, folder),
    }
    for name, part in parts.items():
        try:
            data[name] = part()
        except Exception as e:  # one part that this device refuses must not cost the others
            data["not_recorded"][name] = f"{type(e).__name__}: {e}"
    (folder / "fixture.json").write_text(json.dumps(data, separators=(",", ":")) + "\n")
    size = sum(f.stat().st_size for f in folder.iterdir())
    if size > LIMIT_BYTES:
        for f in folder.iterdir():
            f.unlink()
        raise ValueError(f"{size} bytes recorded, {LIMIT_BYTES} allowed")
    return folder


def main() -> None:
    from cuptiprof.device.locate import driver_present

    parser = arguments(__doc__)
    parser.add_argument("--device", choices=("sim", "cuda"), help="default: cuda where there is a driver")
    options = parser.parse_args()
    device = options.device or ("cuda" if driver_present() else "sim")
    folder = record(device, options.out or Path("tests/data"))
    for name, reason in json.loads((folder / "fixture.json").read_text())["not_recorded"].items():
        print(f"not recorded: {name}: {reason}")
    print(f"{folder}: {sum(f.stat().st_size for f in folder.iterdir())} bytes")


if __name__ == "__main__":
    main()
