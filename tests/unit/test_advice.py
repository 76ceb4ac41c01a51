"""Each rule of advice on a run made for it: what it says, and that it is silent just below its threshold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from report_results import config, make_result

from cuptiprof.analysis.advice.advise import advise
from cuptiprof.analysis.advice.suggestion import Suggestion
from cuptiprof.data.result import Result

US = 1_000
MS = 1_000_000
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
A100 = {
    "device": 0,
    "name": "NVIDIA A100-SXM4-80GB",
    "compute_capability_major": 8,
    "num_multiprocessors": 108,
    "global_memory_size": 80 << 30,
}
TENSOR = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn"


def kernel(start: int, end: int, number: int = 0, **more: Any) -> dict[str, Any]:
    return {"name": "compute", "start": start, "end": end, "correlation_id": number, "stream": 7, **more}


def call(name: str, start: int, end: int, number: int = 0, **more: Any) -> dict[str, Any]:
    return {"name": name, "start": start, "end": end, "correlation_id": number, "thread": 70, **more}


def found(result: Result) -> dict[str, Suggestion]:
    return {finding.rule: finding for finding in advise(result).findings}


def two_kernels(gap: int, launched: int | None = None, *more: dict[str, Any], **tables: Any) -> Result:
    """1 ms of GPU time: a kernel, a gap in its middle, a kernel that was launched at its end (or where it is said)."""
    begin = MS // 2 - gap // 2
    end = begin + gap
    calls = [
        call("cudaLaunchKernel", -10, -5, 1),
        call("cudaLaunchKernel", end - 5 if launched is None else launched, end, 2),
    ]
    return make_result(
        {
            "kernels": [kernel(0, begin, 1), kernel(end, MS, 2, region="train/optimizer")],
            "api_calls": [*calls, *more],
            **tables,
        }
    )


def test_a_run_without_problems_gives_no_advice() -> None:
    kernels = [kernel(i * 100 * US, i * 100 * US + 99 * US, i + 1) for i in range(50)]
    calls = [call("cudaLaunchKernel", i * 10 * US - 20 * US, i * 10 * US - 15 * US, i + 1) for i in range(50)]
    healthy = make_result(
        {
            "kernels": kernels,
            "api_calls": calls,
            "devices": [A100],
            "launch_configs": [config((108 * 8, 1, 1), (1024, 1, 1))],
        }
    )
    assert advise(healthy).findings == []
    report = healthy.advise()
    assert report.rows == [] and "Nothing stands out." in str(report) and "--analysis-metrics" in str(report)
    assert "No GPU activities were recorded." in str(make_result({}).advise())


def test_the_host_is_late() -> None:
    # Gaps longer than 100 us are the host's; 5 % of the time is enough, less is not.
    late = found(two_kernels(120 * US))["host_bound"]
    assert (late.saves, late.time) == (120 * US, 120 * US) and late.place.region == "train/optimizer"
    assert "1 gaps" in late.text and "larger batch" not in late.try_
    assert set(found(two_kernels(99 * US))) == {"launch_bound"}
    assert "host_bound" not in found(two_kernels(120 * US, launched=100))  # in time: another cause
    assert "larger batch" in found(two_kernels(600 * US))["host_bound"].try_  # utilisation below 50 %


def test_launches_are_late() -> None:
    late = found(two_kernels(50 * US))["launch_bound"]
    assert late.saves == 50 * US and "CUDA graphs" in late.try_
    assert found(two_kernels(49 * US)) == {}


def test_the_host_waits() -> None:
    wait = call("cudaStreamSynchronize", 300 * US, 460 * US, 9)
    operators = [{"name": "aten::item", "start": 290 * US, "end": 470 * US, "thread": 70, "instance": 1}]
    findings = found(two_kernels(120 * US, None, wait, operators=operators))
    waits = findings["synchronisation"]
    assert waits.saves == 120 * US and (waits.place.operator, waits.place.call) == (
        "aten::item",
        "cudaStreamSynchronize",
    )
    assert "host_bound" not in findings
    short = {**wait, "start": 420 * US}  # waited for 40 us: so much earlier it could have launched
    findings = found(two_kernels(120 * US, None, short, operators=operators))
    assert set(findings) == {"host_bound"} and findings["host_bound"].saves == 80 * US
    long_enough = {**wait, "start": 410 * US}
    assert found(two_kernels(120 * US, None, long_enough))["synchronisation"].saves == 50 * US


def test_data_loading() -> None:
    loading = {
        "name": "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
        "start": 450 * US,
        "end": 510 * US,
        "instance": 1,
    }
    findings = found(two_kernels(120 * US, operators=[loading]))
    assert findings["data_loader"].saves == 60 * US and findings["host_bound"].saves == 60 * US
    shorter = {**loading, "end": 499 * US}
    assert "data_loader" not in found(two_kernels(120 * US, operators=[shorter]))


@pytest.mark.parametrize(
    ("name", "rule"), [("cudaMalloc", "allocation"), ("cudaFree", "allocation"), ("cuModuleLoadData", "calls")]
)
def test_other_calls(name: str, rule: str) -> None:
    findings = found(two_kernels(120 * US, None, call(name, 450 * US, 500 * US)))
    assert (
        findings[rule].saves == 50 * US
        and findings[rule].place.call == name
        and f"{name} (1 calls)" in findings[rule].text
    )
    assert rule not in found(two_kernels(120 * US, None, call(name, 450 * US, 499 * US)))


def test_set_up_is_most_of_it() -> None:
    setup = [{"name": "set-up", "path": "set-up", "start": -MS, "end": 0, "instance": 1}]
    assert found(two_kernels(0, 0, regions=setup))["outside"].saves == MS
    assert "outside" not in found(two_kernels(0, 0, regions=[{**setup[0], "start": -MS + 11}]))
    # The other rules look at the time from first to last work.
    assert found(two_kernels(120 * US, regions=[{**setup[0], "start": -10 * MS}]))["host_bound"].saves == 120 * US
    assert "host_bound" not in found(
        two_kernels(120 * US, regions=[{**setup[0], "start": -200 * MS}])
    )  # < 0.1 % of the wall time


def copied(size: int, took: int, count: int = 1, **more: Any) -> Result:
    """1 ms: copies, one after the other, then a kernel."""
    each = took // count
    copies = [{"start": i * each, "end": (i + 1) * each, "bytes": size, "copy_kind": 1, "src_kind": 2, "dst_kind": 3, "operator": "aten::to/aten::copy_", **more}
              for i in range(count)]  # fmt: skip
    return make_result({"kernels": [kernel(took, MS)], "memcpys": copies})


def test_copies() -> None:
    pinned = found(copied(1 << 20, 10 * US))["exposed_copies"]
    assert (
        pinned.saves == 10 * US
        and pinned.place.operator == "aten::copy_"
        and "1.0000MB each at 104.86GB/s" in pinned.text
    )
    assert found(copied(1 << 20, 9_999)) == {}
    assert set(found(copied(1 << 20, 10 * US, src_kind=1))) == {"pageable_copies"}
    assert set(found(copied(65_535, 10 * US, 10, src_kind=1))) == {"small_copies"}
    assert set(found(copied(65_536, 10 * US, 10))) == {"exposed_copies"}
    back = found(copied(1 << 20, 10 * US, copy_kind=2))["exposed_copies"]
    assert "to the host" in back.text and "results" in back.try_ and "next batch" in pinned.try_
    assert found(copied(1 << 20, 10 * US, copy_kind=8)) == {}  # within the GPU
    beside = copied(1 << 20, 20 * US)
    hidden = make_result({"kernels": [kernel(0, MS)], "memcpys": list(beside.memcpys.rows())})
    assert found(hidden) == {}  # a kernel runs meanwhile


def launched(blocks: int, threads: int, took: int = 10 * US, name: str = "narrow", **more: Any) -> Result:
    """1 ms: a kernel of this shape, then one that fills the GPU."""
    return make_result(
        {
            "kernels": [
                kernel(
                    0,
                    took,
                    name=name,
                    config=0,
                    module="layer.0",
                    operator="aten::linear/aten::addmm",
                    line="train.py:7 step",
                ),
                kernel(took, MS, config=1),
            ],
            "launch_configs": [config((blocks, 1, 1), (threads, 1, 1), **more), config((108 * 8, 1, 1), (1024, 1, 1))],
            "devices": [A100],
        }
    )


def test_few_blocks() -> None:
    few = found(launched(27, 1024, 40 * US))["few_blocks"]
    assert few.saves == 30 * US and few.time == 40 * US and "0.25 blocks" in few.text
    assert (few.place.kernel, few.place.module, few.place.operator, few.place.line) == (
        "narrow",
        "layer.0",
        "aten::addmm",
        "train.py:7 step",
    )
    assert "few_blocks" not in found(launched(108, 1024, 40 * US))
    assert "few_blocks" not in found(launched(27, 1024, 13 * US))  # 9.75 us
    assert "few_blocks" not in found(launched(1, 1024, 40 * US, name=NCCL))  # communicates: a few blocks are meant


def test_partial_warps() -> None:
    odd = found(launched(108 * 32, 48, 40 * US))["partial_warps"]
    assert odd.saves == 10 * US and "25 %" in odd.text
    assert "partial_warps" not in found(launched(108 * 32, 64, 40 * US))


def test_a_last_wave() -> None:
    # An SM holds two blocks of 1,024 threads: 216 are a wave.
    half = found(launched(216 + 108, 1024, 100 * US))["tail"]
    assert half.saves == 25 * US and half.time == 100 * US and "25 %" in half.text  # half a wave of two
    assert "tail" not in found(launched(2 * 216, 1024, 100 * US))
    assert "tail" in found(launched(4 * 216 + 1, 1024, 100 * US))  # the last of five: 20 %
    assert "tail" not in found(launched(5 * 216 + 1, 1024, 100 * US))
    assert "tail" not in found(launched(108, 1024, 100 * US)) and "tail" not in found(
        launched(216 + 108, 1024, 100 * US, NCCL)
    )


def test_low_occupancy() -> None:
    # 160 KB of shared memory a block: one of 128 threads on an SM of 2048, 6 %.
    low = found(launched(216, 128, 100 * US, dynamic_shared_memory=163_000))["low_occupancy"]
    assert low.saves == pytest.approx(100 * US * (1 - 6 / 15), rel=1e-6) and "6 %" in low.text
    assert "low_occupancy" not in found(launched(216, 512, 100 * US, dynamic_shared_memory=163_000))
    assert "low_occupancy" not in found(launched(216, 128, 100 * US, TENSOR, dynamic_shared_memory=163_000))


def products(name: str, operator: str = "", **device: Any) -> Result:
    return make_result(
        {
            "kernels": [kernel(0, 500 * US, name=name, operator=operator), kernel(500 * US, MS)],
            "launch_configs": [config((108 * 8, 1, 1), (1024, 1, 1))],
            "devices": [{**A100, **device}],
        }
    )


def test_tensor_cores() -> None:
    unused = found(products("some_gemm", "aten::linear/aten::addmm"))["tensor_cores"]
    assert unused.place.operator == "aten::addmm" and unused.time == 500 * US
    assert unused.saves == 500 * US * 15 // 16  # FP16 is 16 times FP32 on the chip
    named = found(products("ampere_sgemm_128x64_nn"))["tensor_cores"]
    assert named.place.kernel == "ampere_sgemm_128x64_nn" and named.saves == unused.saves
    assert "tensor_cores" not in found(products(TENSOR, "aten::addmm"))
    assert "tensor_cores" not in found(products("some_gemm", "aten::add"))
    assert "tensor_cores" not in found(
        products("some_gemm", "aten::addmm", compute_capability_major=6, compute_capability_minor=0)
    )
    mixed = products(TENSOR, "aten::addmm")
    rows = [
        kernel(0, 251 * US, name=TENSOR, operator="aten::addmm"),
        kernel(251 * US, 500 * US, operator="aten::addmm"),
        kernel(500 * US, MS),
    ]
    mostly = make_result({"kernels": rows, "devices": [A100], "launch_configs": list(mixed.launch_configs.rows())})
    assert "tensor_cores" not in found(mostly)


def test_nothing_is_said_of_when_where_kernels_were_left_out() -> None:
    late = two_kernels(120 * US)
    assert set(found(late)) == {"host_bound"}
    filtered = late.filter("regex:^compute$")
    assert set(found(filtered)) == {"host_bound"}  # none was
    one = Result(late.tables, late.metadata, {"filter_rejected": 1})
    assert advise(one).findings == [] and "the filter left out 1 kernels" in advise(one).notes[0]
    assert "The filter left out 1 kernels" in str(one.overview()) and "filter" not in str(late.overview())


def test_gpus_of_others() -> None:
    """A gfx90a says that its compute capability is 9.0."""
    amd = {**A100, "name": "AMD Radeon Graphics", "threads_per_warp": 64, "compute_capability_major": 9}
    for run in (
        launched(216 + 108, 1024, 100 * US),
        launched(108 * 32, 48, 40 * US),
        products("some_gemm", "aten::addmm"),
    ):
        tables = {name: list(table.rows()) for name, table in run.tables.items() if len(table)}
        assert advise(run).findings
        other = advise(make_result({**tables, "devices": [amd]}))
        assert other.findings == [] and other.notes == []
    (use,) = make_result({**tables, "devices": [amd]}).overview().content.facts["use"]
    assert use["occupancy_pct"] is None


def test_communication() -> None:
    def run(hidden: int) -> Result:
        return make_result(
            {"kernels": [kernel(0, 900 * US), kernel(900 * US - hidden, MS, name=NCCL, region="train/backward")]}
        )

    exposed = found(run(50 * US))["communication"]
    assert (exposed.time, exposed.saves) == (150 * US, 100 * US) and exposed.place.region == "train/backward"
    assert "communication" not in found(
        make_result({"kernels": [kernel(0, 901 * US), kernel(901 * US, MS, name=NCCL)]})
    )


def stepped(*lengths: int, role: str = "other") -> Result:
    ends = np.cumsum(lengths)
    markers = [
        {"name": f"ProfilerStep#{i}", "category": "step", "start": int(end) - length, "end": int(end)}
        for i, (end, length) in enumerate(zip(ends, lengths, strict=True))
    ]
    return make_result(
        {
            "markers": markers,
            "kernels": [kernel(0, int(ends[-1]))]
            if role == "kernel"
            else [kernel(0, 10), kernel(int(ends[-1]) - 10, int(ends[-1]))],
        }
    )


def test_steps_that_stand_out() -> None:
    out = found(stepped(100, 100, 100, 150, 100, 100))["long_steps"]
    assert out.saves == 50 and out.place.step == "3" and "of operators and regions" in out.text
    assert "long_steps" not in found(stepped(100, 100, 100, 149, 100, 100))
    assert "long_steps" not in found(stepped(100, 100, 150, 100))  # four steps
    assert "long_steps" not in found(stepped(100, 120, 140, 160, 180, 240))  # uneven as they are
    first = found(stepped(400, 100, 100, 100, 100, 100, role="kernel"))["long_steps"]
    assert "warm up" in first.try_ and "is kernels" in first.text


def test_memory() -> None:
    def run(size: int) -> Result:
        rows = [{"timestamp": 1, "operation": 1, "address": 1, "bytes": size, "memory_kind": 3}]
        return make_result(
            {
                "memory": rows,
                "devices": [A100],
                "kernels": [kernel(0, MS)],
                "launch_configs": [config((864, 1, 1), (1024, 1, 1))],
            }
        )

    limit = (80 << 30) * 9 // 10
    full = found(run(limit + 1))["memory_full"]
    assert full.saves == 0 and "72.000GB of 80.000GB" in full.text
    assert found(run(limit)) == {}


def test_ways_of_parallel_training() -> None:
    busy = {"kernels": [kernel(0, MS)]}

    def rules(**tables: Any) -> list[str]:
        return [finding.rule for finding in advise(make_result({**busy, **tables})).findings]

    scope = {"start": 0, "end": 1, "instance": 1}
    assert rules(operators=[{"name": "DataParallel.forward", **scope}]) == ["data_parallel"]
    assert rules(regions=[{"name": "DistributedDataParallel.forward", "path": "d", **scope}]) == []
    assert rules(operators=[{"name": "gloo:all_reduce", **scope}]) == ["gloo"]
    assert rules(collectives=[{"name": "all_reduce", "backend": "gloo", **scope}]) == ["gloo"]
    assert rules(collectives=[{"name": "all_reduce", "backend": "nccl", **scope}]) == []
    assert advise(make_result({"operators": [{"name": "gloo:all_reduce", **scope}]})).findings == []  # no GPU


def test_losses_make_numbers_doubtful() -> None:
    lossy = make_result(
        {"kernels": [kernel(0, MS)]}, losses={"pool_exhausted": 3, "cupti_dropped": 1, "filter_rejected": 9}
    )
    (doubt,) = advise(lossy).findings
    assert (
        doubt.rule == "losses" and doubt.saves == 0 and "3 pool_exhausted" in doubt.text and "1 more kind" in doubt.text
    )
    assert advise(make_result({"kernels": [kernel(0, MS)]}, losses={"filter_rejected": 9})).findings == []
    (imported,) = advise(Result(lossy.tables, {"device": "import:x.json"}, lossy.losses)).findings
    assert "budget" in doubt.try_ and "budget" not in imported.try_


@pytest.mark.parametrize(
    "make",
    [lambda: two_kernels(120 * US), lambda: copied(1 << 20, 10 * US), lambda: stepped(100, 100, 100, 400, 100, 100)],
)
def test_nothing_is_said_of_when_where_time_is_simulated(make: Callable[[], Result]) -> None:
    real = make()
    assert advise(real).findings
    simulated = Result(real.tables, {"simulated": True}, real.losses)
    assert advise(simulated).findings == [] and "simulated device" in advise(simulated).notes[0]
    narrow = launched(27, 1024, 40 * US)
    assert set(found(Result(narrow.tables, {"simulated": True}))) == {"few_blocks", "tensor_cores"}
