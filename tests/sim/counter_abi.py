"""CUPTI's counter functions through ctypes, on the simulated device or on NVIDIA's library."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_char_p, c_double, c_int, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

from cuptiprof.sim.device import library_path

RANGE, SAMPLING = 0, 1
AUTO, USER = 1, 2
APPLICATION_REPLAY, KERNEL_REPLAY, USER_REPLAY = 1, 2, 3
SYSCLK, GPU_TIME = 0, 1
KEEP_OLDEST, KEEP_LATEST = 0, 1

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


class Host:
    """A host object: planning and evaluation."""

    def __init__(self, api: CounterApi, chip: str = "GH100", kind: int = RANGE) -> None:
        self.api = api
        self.object = api.call("cuptiProfilerHostInitialize", chip=chip.encode(), type=kind).object

    def bases(self, kind: int) -> list[str]:
        """Base metrics of a type."""
        p = self.api.call("cuptiProfilerHostGetBaseMetrics", object=self.object, type=kind)
        return [p.names[i].decode() for i in range(p.count)]

    def subs(self, name: str, kind: int) -> list[str]:
        """What may follow a base name."""
        p = self.api.call("cuptiProfilerHostGetSubMetrics", object=self.object, name=name.encode(), type=kind)
        return [p.names[i].decode() for i in range(p.count)]

    def properties(self, name: str) -> tuple[str, str, str, int]:
        """Description, unit, dimension, type."""
        p = self.api.call("cuptiProfilerHostGetMetricProperties", object=self.object, name=name.encode())
        return p.description.decode(), p.unit.decode(), p.dimension.decode(), p.type

    def add(self, metrics: Sequence[str]) -> None:
        """Add metrics to the configuration."""
        names = text_array(metrics)
        self.api.call("cuptiProfilerHostConfigAddMetrics", object=self.object, names=names, count=len(metrics))

    def image(self) -> Any:
        """The configuration image."""
        size = self.api.call("cuptiProfilerHostGetConfigImageSize", object=self.object).size
        image = (c_uint8 * size)()
        self.api.call("cuptiProfilerHostGetConfigImage", object=self.object, size=size, image=image)
        return image

    def evaluate(self, data: Any, index: int, metrics: Sequence[str]) -> list[float]:
        """Values of these metrics in a row of a counter-data image."""
        values = (c_double * len(metrics))()
        self.api.call(
            "cuptiProfilerHostEvaluateToGpuValues",
            object=self.object,
            image=data,
            image_size=len(data),
            index=index,
            names=text_array(metrics),
            count=len(metrics),
            values=values,
        )
        return list(values)


def passes(api: CounterApi, metrics: Sequence[str], chip: str = "GH100", kind: int = RANGE) -> int:
    """Passes that a set of metrics takes."""
    host = Host(api, chip, kind)
    host.add(metrics)
    image = host.image()
    return int(api.call("cuptiProfilerHostGetNumOfPasses", size=len(image), image=image).passes)


class Ranges:
    """A range profiler of the current context with its images."""

    def __init__(
        self,
        api: CounterApi,
        metrics: Sequence[str],
        *,
        mode: int = AUTO,
        replay: int = KERNEL_REPLAY,
        rows: int = 64,
        max_ranges: int = 64,
        levels: int = 1,
        chip: str = "GH100",
    ) -> None:
        self.api, self.metrics = api, list(metrics)
        api.call("cuptiProfilerInitialize")
        self.host = Host(api, chip)
        self.host.add(metrics)
        self.config = self.host.image()
        self.object = api.call("cuptiRangeProfilerEnable", context=api.context()).object
        size = self.do(
            "GetCounterDataSize", names=text_array(metrics), count=len(metrics), max_ranges=rows, tree_nodes=rows
        ).size
        self.data = (c_uint8 * size)()
        self.do("CounterDataImageInitialize", size=size, image=self.data)
        self.settings = {
            "config": self.config,
            "config_size": len(self.config),
            "image": self.data,
            "image_size": size,
            "range": mode,
            "replay": replay,
            "max_ranges": max_ranges,
            "levels": levels,
            "min_level": 1,
        }
        self.set_config()

    def do(self, what: str, **fields: Any) -> Any:
        """Call cuptiRangeProfiler<what> on the object."""
        return self.api.call(f"cuptiRangeProfiler{what}", object=self.object, **fields)

    def set_config(self, **changes: Any) -> None:
        """SetConfig with the settings of the constructor, or others."""
        self.do("SetConfig", **{**self.settings, **changes})

    def start(self) -> None:
        """Start."""
        self.do("Start")

    def stop(self) -> Any:
        """Stop; pass_index, target_level and all_submitted in the answer."""
        return self.do("Stop")

    def push(self, name: str) -> None:
        """PushRange."""
        self.do("PushRange", name=name.encode())

    def pop(self) -> None:
        """PopRange."""
        self.do("PopRange")

    def decode(self) -> int:
        """DecodeData; ranges dropped."""
        return int(self.do("DecodeData").dropped)

    def count(self) -> int:
        """Ranges in the image."""
        p = self.api.call("cuptiRangeProfilerGetCounterDataInfo", image=self.data, image_size=len(self.data))
        return int(p.ranges)

    def name(self, index: int, delimiter: str = "/") -> str:
        """Name of a range."""
        image = {"image": self.data, "image_size": len(self.data), "index": index, "delimiter": delimiter.encode()}
        return str(self.api.call("cuptiRangeProfilerCounterDataGetRangeInfo", **image).name.decode())

    def values(self, index: int) -> list[float]:
        """Values of the metrics in a range."""
        return self.host.evaluate(self.data, index, self.metrics)

    def disable(self) -> None:
        """Disable."""
        self.do("Disable")


class Sampler:
    """A PM sampler of a device with its images; 100 us and the newest trigger unless told otherwise."""

    def __init__(
        self,
        api: CounterApi,
        metrics: Sequence[str],
        *,
        chip: str = "GH100",
        device: int = 0,
        interval: int = 100_000,
        trigger: int = GPU_TIME,
        append: int = KEEP_OLDEST,
        samples: int = 1000,
        capacity: int = 1000,
    ) -> None:
        self.api, self.metrics = api, list(metrics)
        api.call("cuptiProfilerInitialize")
        self.host = Host(api, chip, SAMPLING)
        self.host.add(metrics)
        config = self.host.image()
        self.object = api.call("cuptiPmSamplingEnable", device=device).object
        names = {"names": text_array(metrics), "count": len(metrics)}
        self.data = (c_uint8 * self.do("GetCounterDataSize", max_samples=samples, **names).size)()
        self.clear()
        self.settings = {
            "config": config,
            "config_size": len(config),
            "buffer_size": 6144 * capacity,
            "interval": interval,
            "trigger": trigger,
            "append": append,
        }
        self.set_config()

    def do(self, what: str, **fields: Any) -> Any:
        """Call cuptiPmSampling<what> on the object."""
        return self.api.call(f"cuptiPmSampling{what}", object=self.object, **fields)

    def set_config(self, **changes: Any) -> None:
        """SetConfig with the settings of the constructor, or others."""
        self.do("SetConfig", **{**self.settings, **changes})

    def clear(self) -> None:
        """CounterDataImageInitialize: no samples in the image."""
        self.do("CounterDataImageInitialize", size=len(self.data), image=self.data)

    def decode(self) -> Any:
        """DecodeData; reason and overflow in the answer."""
        return self.do("DecodeData", image=self.data, image_size=len(self.data))

    def count(self) -> int:
        """Samples in the image."""
        p = self.api.call("cuptiPmSamplingGetCounterDataInfo", image=self.data, image_size=len(self.data))
        assert p.populated == p.completed
        return int(p.populated)

    def times(self, index: int) -> tuple[int, int]:
        """Start and end of a sample, ns."""
        p = self.do("CounterDataGetSampleInfo", image=self.data, image_size=len(self.data), index=index)
        return p.start, p.end

    def values(self, index: int) -> list[float]:
        """Values of the metrics in a sample."""
        return self.host.evaluate(self.data, index, self.metrics)
