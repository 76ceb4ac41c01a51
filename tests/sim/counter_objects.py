"""Profiler objects for tests: a host, the ranges of a context, the samples of a device."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_double, c_uint8
from typing import Any

from counter_abi import CounterApi, text_array

from cuptiprof.sim.sim_device import Op, SimDevice

RANGE, SAMPLING = 0, 1
AUTO, USER = 1, 2
APPLICATION_REPLAY, KERNEL_REPLAY, USER_REPLAY = 1, 2, 3
SYSCLK, GPU_TIME = 0, 1
KEEP_OLDEST, KEEP_LATEST = 0, 1
INVALID_PARAMETER, INVALID_OPERATION, OUT_OF_MEMORY, NOT_INITIALIZED, INVALID_NAME = 1, 7, 8, 15, 17
HARDWARE_BUSY, NOT_SUPPORTED, INSUFFICIENT_PRIVILEGES, INVALID_CHIP, UNKNOWN = 26, 27, 35, 46, 999


ONE_PASS = [
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm__inst_executed.avg.per_cycle_active",
    "dram__bytes_read.sum.per_second",
    "dram__bytes_write.sum.per_second",
]
TWO_PASSES = [*ONE_PASS, "lts__t_sector_hit_rate.pct", "l1tex__t_sector_hit_rate.pct"]
SEVERAL = [
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
    *TWO_PASSES,
]


def kernel(sim: SimDevice, name: str, duration: int = 10_000, **fields: object) -> Any:
    """One launch of 264 blocks of 256 threads."""
    op = {"grid": (264, 1, 1), "block": (256, 1, 1), **fields}
    return sim.ops(1, Op.KERNEL, name=name, duration_ns=duration, **op)


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
