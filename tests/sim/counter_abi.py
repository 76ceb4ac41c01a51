"""CUPTI's counter functions through ctypes, on the simulated device or on NVIDIA's library."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Sequence
from ctypes import c_char_p, c_double, c_int, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

from cuptiprof.sim.sim_device import library_path

_OBJECT: list[tuple[str, Any]] = [("object", c_void_p)]
_IMAGE: list[tuple[str, Any]] = [("image", c_void_p), ("image_size", c_size_t)]
_METRICS: list[tuple[str, Any]] = [("names", ctypes.POINTER(c_char_p)), ("count", c_size_t)]

# Fields after structSize and pPriv, as the headers declare them.
_FIELDS: dict[str, list[tuple[str, Any]]] = {
    "cuptiProfilerInitialize": [],
    "cuptiProfilerDeviceSupported": [
        ("device", c_int),
        *[(n, c_int) for n in ("supported", "architecture", "sli", "vgpu", "confidential", "cmp", "wsl", "api")],
    ],
    "cuptiProfilerGetCounterAvailability": [("context", c_void_p), ("image_size", c_size_t), ("image", c_void_p)],
    "cuptiPmSamplingGetCounterAvailability": [("device", c_size_t), ("image_size", c_size_t), ("image", c_void_p)],
    "cuptiDeviceGetChipName": [("device", c_size_t), ("chip", c_char_p)],
    "cuptiProfilerHostInitialize": [("type", c_int), ("chip", c_char_p), ("availability", c_void_p), *_OBJECT],
    "cuptiProfilerHostDeinitialize": _OBJECT,
    "cuptiProfilerHostGetSupportedChips": [("count", c_size_t), ("names", ctypes.POINTER(c_char_p))],
    "cuptiProfilerHostGetBaseMetrics": [*_OBJECT, ("type", c_int), *_METRICS],
    "cuptiProfilerHostGetSubMetrics": [
        *_OBJECT,
        *[("type", c_int), ("name", c_char_p), ("count", c_size_t), ("names", ctypes.POINTER(c_char_p))],
    ],
    "cuptiProfilerHostGetMetricProperties": [
        *_OBJECT,
        *[(n, c_char_p) for n in ("name", "description", "unit", "dimension")],
        ("type", c_int),
    ],
    "cuptiProfilerHostConfigAddMetrics": [*_OBJECT, *_METRICS],
    "cuptiProfilerHostGetConfigImageSize": [*_OBJECT, ("size", c_size_t)],
    "cuptiProfilerHostGetConfigImage": [*_OBJECT, ("size", c_size_t), ("image", c_void_p)],
    "cuptiProfilerHostGetNumOfPasses": [("size", c_size_t), ("image", c_void_p), ("passes", c_size_t)],
    "cuptiProfilerHostEvaluateToGpuValues": [
        *_OBJECT,
        *_IMAGE,
        ("index", c_size_t),
        *_METRICS,
        ("values", ctypes.POINTER(c_double)),
    ],
    "cuptiProfilerHostGetRangeName": [*_IMAGE, ("index", c_size_t), ("delimiter", c_char_p), ("name", c_void_p)],
    "cuptiRangeProfilerEnable": [("context", c_void_p), *_OBJECT],
    "cuptiRangeProfilerDisable": _OBJECT,
    "cuptiRangeProfilerSetConfig": [
        *_OBJECT,
        *[("config_size", c_size_t), ("config", c_void_p), ("image_size", c_size_t), ("image", c_void_p)],
        *[("range", c_int), ("replay", c_int), ("max_ranges", c_size_t)],
        *[("levels", c_uint16), ("min_level", c_uint16), ("pass_index", c_size_t), ("target_level", c_uint16)],
    ],
    "cuptiRangeProfilerStart": _OBJECT,
    "cuptiRangeProfilerStop": [
        *_OBJECT,
        *[("pass_index", c_size_t), ("target_level", c_size_t), ("all_submitted", c_uint8)],
    ],
    "cuptiRangeProfilerPushRange": [*_OBJECT, ("name", c_char_p)],
    "cuptiRangeProfilerPopRange": _OBJECT,
    "cuptiRangeProfilerDecodeData": [*_OBJECT, ("dropped", c_size_t)],
    "cuptiRangeProfilerGetCounterDataSize": [
        *_OBJECT,
        *_METRICS,
        *[("max_ranges", c_size_t), ("tree_nodes", c_uint32), ("size", c_size_t)],
    ],
    "cuptiRangeProfilerCounterDataImageInitialize": [*_OBJECT, ("size", c_size_t), ("image", c_void_p)],
    "cuptiRangeProfilerGetCounterDataInfo": [*_IMAGE, ("ranges", c_size_t)],
    "cuptiRangeProfilerCounterDataGetRangeInfo": [
        *_IMAGE,
        *[("index", c_size_t), ("delimiter", c_char_p), ("name", c_char_p)],
    ],
    "cuptiPmSamplingEnable": [("device", c_size_t), *_OBJECT],
    "cuptiPmSamplingDisable": _OBJECT,
    "cuptiPmSamplingSetConfig": [
        *_OBJECT,
        *[("config_size", c_size_t), ("config", c_void_p), ("buffer_size", c_size_t), ("interval", c_uint64)],
        *[("trigger", c_int), ("append", c_int)],
    ],
    "cuptiPmSamplingStart": _OBJECT,
    "cuptiPmSamplingStop": _OBJECT,
    "cuptiPmSamplingDecodeData": [
        *_OBJECT,
        *[("image", c_void_p), ("image_size", c_size_t), ("reason", c_int), ("overflow", c_uint8)],
    ],
    "cuptiPmSamplingGetCounterDataSize": [*_OBJECT, *_METRICS, ("max_samples", c_uint32), ("size", c_size_t)],
    "cuptiPmSamplingCounterDataImageInitialize": [*_OBJECT, ("size", c_size_t), ("image", c_void_p)],
    "cuptiPmSamplingGetCounterDataInfo": [
        *_IMAGE,
        *[("total", c_size_t), ("populated", c_size_t), ("completed", c_size_t)],
    ],
    "cuptiPmSamplingCounterDataGetSampleInfo": [
        *_OBJECT,
        *_IMAGE,
        *[("index", c_size_t), ("start", c_uint64), ("end", c_uint64)],
    ],
}

_HEAD: list[tuple[str, Any]] = [("structSize", c_size_t), ("pPriv", c_void_p)]
_STRUCTS = {name: type(name, (ctypes.Structure,), {"_fields_": _HEAD + fields}) for name, fields in _FIELDS.items()}


class CuptiFailed(Exception):
    """A CUPTI function returned `code`."""

    def __init__(self, function: str, code: int, params: Any) -> None:
        super().__init__(f"{function} returned {code}")
        self.code = code
        self.params = params


def text_array(names: Sequence[str]) -> Any:
    """``const char**`` of these names."""
    return (c_char_p * max(len(names), 1))(*[n.encode() for n in names])


@contextlib.contextmanager
def refused(code: int) -> Iterator[list[CuptiFailed]]:
    """The block must end with a CUPTI function returning `code`; the list gets the exception."""
    caught: list[CuptiFailed] = []
    try:
        yield caught
    except CuptiFailed as failed:
        assert failed.code == code, failed
        caught.append(failed)
    else:
        raise AssertionError(f"nothing was refused with {code}")


class CounterApi:
    """CUPTI functions by name: ``api.call("cuptiX", field=value)`` gives the filled struct or raises CuptiFailed."""

    def __init__(self) -> None:
        self.lib = ctypes.CDLL(str(library_path()))

    def call(self, function: str, **fields: Any) -> Any:
        """Call `function` with a struct of these fields."""
        struct = _STRUCTS[function]
        params = struct()
        name, kind = struct._fields_[-1][:2]
        params.structSize = getattr(struct, name).offset + ctypes.sizeof(kind)
        for key, value in fields.items():
            if isinstance(value, ctypes.Array) and key in ("image", "config"):
                value = ctypes.cast(value, c_void_p)
            setattr(params, key, value)
        code = getattr(self.lib, function)(ctypes.byref(params))
        if code != 0:
            raise CuptiFailed(function, code, params)
        return params

    def context(self) -> int:
        """The calling thread's current context."""
        handle = c_void_p()
        assert self.lib.cuCtxGetCurrent(ctypes.byref(handle)) == 0
        return handle.value or 0
