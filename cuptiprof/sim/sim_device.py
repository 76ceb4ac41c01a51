"""The simulated GPU from Python: a thin ctypes face of ``csrc/sim/cuptisim.h``."""

from __future__ import annotations

import ctypes
import enum
import importlib.util
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cuptiprof.errors import DeviceError

_CUDA_ERROR_INVALID_VALUE, _CUDA_ERROR_NOT_READY = 1, 600
RUNTIME, DRIVER = 2, 1  # CUpti_CallbackDomain: RUNTIME_API = 2, DRIVER_API = 1


class Op(enum.IntEnum):
    """cuptisim_op_kind."""

    KERNEL = 1
    MEMCPY = 2
    MEMCPY_PEER = 3
    MEMSET = 4
    API = 5
    SYNC_STREAM = 6
    SYNC_CONTEXT = 7
    SYNC_EVENT = 8
    STREAM_WAIT_EVENT = 9
    EVENT_RECORD = 10
    ALLOC = 11
    FREE = 12
    STREAM_CREATE = 13
    CONTEXT_CREATE = 14
    GRAPH_BEGIN_CAPTURE = 15
    GRAPH_END_CAPTURE = 16
    GRAPH_LAUNCH = 17
    PROFILER_START = 18
    PROFILER_STOP = 19
    MODULE_UNLOAD = 20
    GRAPH_INSTANTIATE = 21
    STREAM_DESTROY = 22
    CONTEXT_DESTROY = 23
    MEMORY_POOL = 24
    GRAPH_CREATE = 25
    GRAPH_ADD_CHILD = 26
    GRAPH_CLONE = 27
    GRAPH_DESTROY_NODE = 28
    GRAPH_DESTROY = 29
    GRAPH_EXEC_UPDATE = 30
    GRAPH_EXEC_SET_NODE = 31
    GRAPH_EXEC_DESTROY = 32


class Flag(enum.IntFlag):
    """cuptisim_op_flags."""

    API_TIMES = 1
    GPU_TIMES = 2
    ASYNC = 4
    NO_API = 8
    NO_RECORD = 16
    COMMUNICATES = 32
    ADD_NODE = 64


class Fault(enum.IntEnum):
    """cuptisim_fault."""

    FAIL_CALL = 1
    DROP_RECORDS = 2
    ZERO_TIMESTAMPS = 3
    LATE_RECORDS = 4
    SHUFFLE = 5
    OTHER_SUBSCRIBER = 6
    NO_PRIVILEGES = 7
    SLOW_WORKER = 8
    COUNTERS_BUSY = 9
    NO_COUNTERS = 10
    MISSING_METRIC = 11
    DROP_RANGES = 12
    RANGE_LIMIT = 50
    SAMPLER_STUCK = 51
    RANGE_TIME = 110
    SAMPLER_ENDLESS = 111
    SAMPLED_UNRECORDED = 112
    OTHER_CHIP = 100
    UNAVAILABLE = 101
    CLOCKS_LOCKED = 102
    OLD_DRIVER = 120
    CALL_TIME = 121


class _OpStruct(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("kind", ctypes.c_uint16),
        ("flags", ctypes.c_uint16),
        *[(n, ctypes.c_uint32) for n in ("domain", "cbid", "thread", "correlation", "device", "context")],
        ("stream", ctypes.c_uint32),
        ("return_value", ctypes.c_uint32),
        *[(n, ctypes.c_uint64) for n in ("api_start", "api_end", "gpu_start", "gpu_end", "duration_ns")],
        ("name", ctypes.c_char_p),
        ("grid", ctypes.c_int32 * 3),
        ("block", ctypes.c_int32 * 3),
        ("cluster", ctypes.c_uint32 * 3),
        ("registers_per_thread", ctypes.c_uint32),
        ("static_shared_memory", ctypes.c_int32),
        ("dynamic_shared_memory", ctypes.c_int32),
        ("local_memory_per_thread", ctypes.c_uint32),
        ("memory_kind", ctypes.c_uint32),
        ("bytes", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        *[(n, ctypes.c_uint32) for n in ("copy_kind", "src_kind", "dst_kind", "dst_device", "dst_context")],
        *[(n, ctypes.c_uint32) for n in ("value", "event", "graph_id")],
        ("graph_node_id", ctypes.c_uint64),
        ("priority", ctypes.c_uint32),
        ("channel", ctypes.c_uint32),
    ]


class _Config(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("cupti_version", ctypes.c_uint32),
        ("num_devices", ctypes.c_uint32),
        ("virtual_clock", ctypes.c_uint32),
        ("seed", ctypes.c_uint64),
        ("chip", ctypes.c_char_p),
        ("launch_latency_ns", ctypes.c_uint64),
        ("api_call_ns", ctypes.c_uint32),
    ]


class _Truth(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("buffers_outstanding", ctypes.c_uint32),
        *[
            (n, ctypes.c_uint64)
            for n in (
                "api_calls",
                "kernels",
                "memcpys",
                "memsets",
                "records_written",
                "kernel_records_written",
                "records_dropped",
                "kernel_records_dropped",
                "buffers_requested",
                "buffers_completed",
                "callbacks",
                "kernels_replayed",
                "bytes_saved",
                "bytes_restored",
                "ranges_collected",
                "ranges_dropped",
                "counter_configs",
                "samples_produced",
                "samples_lost",
            )
        ],
    ]


def _numpy_dtype() -> Any:
    scalar: Any = np.dtype  # NumPy's stubs know each ctypes type apart, not "one of them"
    fields: dict[str, Any] = {"names": [], "formats": [], "offsets": [], "itemsize": ctypes.sizeof(_OpStruct)}
    for name, kind, *_ in _OpStruct._fields_:
        fields["names"].append(name)
        fields["offsets"].append(getattr(_OpStruct, name).offset)
        if kind is ctypes.c_char_p:
            fields["formats"].append(np.uint64)  # address of the text
        elif isinstance(kind, type) and issubclass(kind, ctypes.Array):
            fields["formats"].append((scalar(kind._type_).str, (kind._length_,)))
        else:
            fields["formats"].append(scalar(kind).str)
    return scalar(fields)


OP_DTYPE = _numpy_dtype()
"""NumPy structured dtype of ``cuptisim_op``; `name` holds an address (see :meth:`SimDevice.names`)."""


def library_path() -> Path:
    """Where libcupti_sim.so lies: beside the native module.

    Raises:
        DeviceError: it was not installed.
    """
    spec = importlib.util.find_spec("cuptiprof._core")
    folder = Path(spec.origin).parent if spec and spec.origin else Path(__file__).parent.parent
    path = folder / "libcupti_sim.so"
    if not path.is_file():
        raise DeviceError(f"the simulated device is missing: {path}", hint="reinstall cuptiprof")
    return path


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    lib = ctypes.CDLL(str(library_path()))
    lib.cuptisim_reset.argtypes = [ctypes.POINTER(_Config)]
    lib.cuptisim_open.argtypes = [ctypes.POINTER(_Config)]
    lib.cuptisim_close.restype = None
    lib.cuptisim_run.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)]
    lib.cuptisim_now.restype = ctypes.c_uint64
    lib.cuptisim_advance.argtypes = [ctypes.c_uint64]
    lib.cuptisim_set_thread.argtypes = [ctypes.c_uint32]
    lib.cuptisim_event_time.argtypes = [ctypes.c_uint32]
    lib.cuptisim_event_time.restype = ctypes.c_uint64
    number = ctypes.c_uint64
    lib.cuptisim_inject.argtypes = [ctypes.c_int, ctypes.c_char_p, number, number, number]
    lib.cuptisim_report_state.argtypes = [ctypes.c_uint32, ctypes.c_int, ctypes.c_char_p]
    lib.cuptisim_report_state.restype = None
    lib.cuptisim_environment.argtypes = [ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t]
    lib.cuptisim_environment.restype = None
    lib.cuptisim_get_truth.argtypes = [ctypes.POINTER(_Truth)]
    lib.cuptisim_set_counter.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_double]
    lib.cuptisim_true_metric.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_double)]
    return lib


@dataclass(frozen=True)
class Setup:
    """What the machine is. 0: the default."""

    chip: str = "H100"
    cupti_version: int = 130001
    devices: int = 1
    virtual_clock: bool = False
    seed: int = 1
    launch_latency_ns: int = 0
    api_call_ns: int = 0

    def __str__(self) -> str:
        several = f"{self.devices} x " if self.devices > 1 else ""
        return f"{several}{self.chip} with {'a virtual' if self.virtual_clock else 'the real'} clock"

    def config(self) -> _Config:
        return _Config(
            ctypes.sizeof(_Config),
            self.cupti_version,
            self.devices,
            int(self.virtual_clock),
            self.seed,
            self.chip.encode(),
            self.launch_latency_ns,
            self.api_call_ns,
        )


class Opened:
    """The machine stays what it is until this is closed, or gone.

    Ctrl-C comes between any two instructions of Python: opening and noting it, and closing and noting that, are one each
    (a C function that ``map`` calls).
    """

    def __init__(self, library: ctypes.CDLL, config: _Config) -> None:
        results: list[int] = []
        self._opening = map(library.cuptisim_open, [ctypes.byref(config)])
        self._closing = map(library.cuptisim_close, filter(operator.not_, results))
        results.extend(self._opening)
        self.rc = results[0]

    def close(self) -> None:
        """Others may reset it again. Closing twice does nothing."""
        next(self._closing, None)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_closing"):
            self.close()


class SimDevice:
    """The simulated machine of this process (there is one). Calls may come from any thread."""

    def __init__(self) -> None:
        self._lib = _library()
        self._texts: dict[bytes, ctypes.Array[ctypes.c_char]] = {}

    @property
    def library(self) -> ctypes.CDLL:
        """libcupti_sim.so: CUPTI's calls, some of the driver's, and its own."""
        return self._lib

    def reset(self, setup: Setup | None = None, /, **fields: Any) -> None:
        """Back to a fresh machine, as `setup` or the fields of :class:`Setup` say, once no thread is inside a call.

        Raises:
            DeviceError: a session uses it, or a thread stayed inside a call.
        """
        wanted = setup or Setup(**fields)
        self._check(self._lib.cuptisim_reset(ctypes.byref(wanted.config())), wanted)

    def open(self, setup: Setup) -> Opened:
        """The machine as `setup` says: shared, and left as it is, if it is so already; else as after :meth:`reset`.

        Raises:
            DeviceError: it is something else, and in use.
        """
        opened = Opened(self._lib, setup.config())
        self._check(opened.rc, setup)
        return opened

    def _check(self, rc: int, wanted: Setup) -> None:
        if rc == _CUDA_ERROR_INVALID_VALUE:
            raise DeviceError(f"the simulated device cannot be {wanted}")
        if rc == _CUDA_ERROR_NOT_READY:
            raise DeviceError(
                f"the simulated device is in use by a thread that waits in a call: it cannot become {wanted} now",
                hint="wait for that thread; a process has one simulated device",
            )
        if rc != 0:
            raise DeviceError(
                f"the simulated device is in use: it cannot become {wanted} now",
                hint="stop the running session first; a process has one simulated device",
            )

    def run(self, ops: npt.NDArray[Any]) -> None:
        """Run an array of :data:`OP_DTYPE` in order on the calling thread, without the GIL.

        Raises:
            DeviceError: an op was refused; the message says which.
        """
        ops = np.ascontiguousarray(ops, dtype=OP_DTYPE)
        done = ctypes.c_size_t()
        rc = self._lib.cuptisim_run(ops.ctypes.data, len(ops), ctypes.byref(done))
        if rc != 0:
            raise DeviceError(f"simulated call {done.value} of {len(ops)} failed with CUresult {rc}")

    def prepare(self, ops: npt.NDArray[Any]) -> Callable[[], None]:
        """A function that runs `ops` (as :meth:`run`) again and again at little cost; it keeps its own copy."""
        ops = np.array(ops, dtype=OP_DTYPE)
        address, count, run = ops.ctypes.data, len(ops), self._lib.cuptisim_run
        done = ctypes.c_size_t()

        def launch(_alive: Any = ops) -> None:
            rc = run(address, count, done)
            if rc != 0:
                raise DeviceError(f"simulated call {done.value} of {count} failed with CUresult {rc}")

        return launch

    def name_address(self, text: str | bytes) -> int:
        """Address of a NUL-terminated copy of `text` that lives as long as this object (for ``ops["name"]``)."""
        raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        buffer = self._texts.get(raw)
        if buffer is None:
            buffer = self._texts[raw] = ctypes.create_string_buffer(raw)
        return ctypes.addressof(buffer)

    def ops(self, count: int, kind: Op, **fields: Any) -> npt.NDArray[Any]:
        """`count` equal ops; `fields` are those of ``cuptisim_op``, `name` as text."""
        ops = np.zeros(count, OP_DTYPE)
        ops["size"] = OP_DTYPE.itemsize
        ops["kind"] = kind
        ops["domain"] = fields.pop("domain", RUNTIME)
        if "name" in fields:
            ops["name"] = self.name_address(fields.pop("name"))
        for key, value in fields.items():
            ops[key] = value
        return ops

    def call(self, kind: Op, **fields: Any) -> None:
        """Run one op."""
        self.run(self.ops(1, kind, **fields))

    def launch(
        self,
        name: str,
        grid: Sequence[int] = (1, 1, 1),
        block: Sequence[int] = (128, 1, 1),
        *,
        count: int = 1,
        **fields: Any,
    ) -> None:
        """Launch a kernel `count` times (cudaLaunchKernel)."""
        self.run(self.ops(count, Op.KERNEL, name=name, grid=tuple(grid), block=tuple(block), **fields))

    def synchronize(self, **fields: Any) -> None:
        """cudaDeviceSynchronize."""
        self.call(Op.SYNC_CONTEXT, **fields)

    def callback_name(self, domain: int, cbid: int) -> str:
        """Name of an API function with its version suffix; "" if the stand-in knows no such callback ID."""
        name = ctypes.c_char_p()
        rc = self._lib.cuptiGetCallbackName(domain, cbid, ctypes.byref(name))
        return (name.value or b"").decode() if rc == 0 else ""

    def now(self) -> int:
        """The machine's own time, ns: CLOCK_MONOTONIC (in a session records carry it too), or the virtual clock."""
        return int(self._lib.cuptisim_now())

    def advance(self, at: int) -> None:
        """Virtual clock: move to this time if it is later."""
        self._lib.cuptisim_advance(at)

    def event_time(self, event: int) -> int:
        """When the GPU passed (or will pass) an event that was recorded, ns; 0: it never was."""
        return int(self._lib.cuptisim_event_time(event))

    def set_thread(self, tid: int) -> None:
        """Thread ID that the calling thread reports; 0: its own."""
        self._lib.cuptisim_set_thread(tid)

    def inject(self, fault: Fault, name: str = "", a: int = 0, b: int = 0, c: int = 0) -> None:
        """Script a fault; see ``cuptisim_fault`` for the numbers."""
        if self._lib.cuptisim_inject(int(fault), name.encode(), a, b, c) != 0:
            raise DeviceError(f"unknown fault {fault!r}")

    def report_state(self, cbid: int, result: int, message: str) -> None:
        """CUPTI reports its state (``CUpti_CallbackIdState``); after a fatal error, 1, it finalizes itself."""
        self._lib.cuptisim_report_state(cbid, result, message.encode())

    def environment(self, kind: int, *values: int, device: int = 0) -> None:
        """CUPTI writes a record of kind ENVIRONMENT now, for whoever wants that kind.

        Args:
            kind: ``CUpti_ActivityEnvironmentKind``: 1 speed, 2 temperature, 3 power, 4 cooling.
            values: the fields of that kind in their order (at most five), as CUPTI has them: MHz, degrees Celsius, mW, %.
        """
        fields = (ctypes.c_uint32 * len(values))(*values)
        self._lib.cuptisim_environment(device, kind, fields, len(values))

    def clear_faults(self) -> None:
        """Forget every scripted fault."""
        self._lib.cuptisim_clear_faults()

    def truth(self) -> dict[str, int]:
        """What really happened, by counter name."""
        truth = _Truth(ctypes.sizeof(_Truth))
        self._lib.cuptisim_get_truth(ctypes.byref(truth))
        return {f[0]: int(getattr(truth, f[0])) for f in _Truth._fields_ if f[0] != "size"}

    def set_counter(self, base_metric: str, total: float, kernel: str | None = None) -> None:
        """Give a counter's sum over the whole GPU for one execution of `kernel` (mangled name; None: of every kernel).

        Counters that follow from it (hits of lookups) follow it. :meth:`reset` forgets it.

        Raises:
            DeviceError: not a base metric of type counter, or one that only time decides.
        """
        name = None if kernel is None else kernel.encode("utf-8", "surrogateescape")
        if self._lib.cuptisim_set_counter(name, base_metric.encode(), total) != 0:
            raise DeviceError(f"the simulated device cannot be given {base_metric!r}")

    def clear_counters(self) -> None:
        """Forget what :meth:`set_counter` gave."""
        self._lib.cuptisim_clear_counters()

    def true_metric(self, metric: str, ops: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """True values of a metric (full name), one for one execution of each kernel in `ops` (:data:`OP_DTYPE`).

        Raises:
            DeviceError: the chip has no such metric.
        """
        ops = np.ascontiguousarray(ops, dtype=OP_DTYPE).reshape(-1)
        values = np.empty(len(ops))
        value, name = ctypes.c_double(), metric.encode()
        for i in range(len(ops)):
            address = ops.ctypes.data + i * OP_DTYPE.itemsize
            if self._lib.cuptisim_true_metric(address, name, ctypes.byref(value)) != 0:
                raise DeviceError(f"the simulated device has no metric {metric!r}")
            values[i] = value.value
        return values
