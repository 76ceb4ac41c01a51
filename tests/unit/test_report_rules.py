"""Nsight Compute's core rules: what they say on either side of each threshold."""

from __future__ import annotations

import math

import pytest
from metric_results import counted, launch, values

from cuptiprof.analysis.kernel_rules import l2_rules, rules
from cuptiprof.analysis.kernel_rules.rule_message import Message
from cuptiprof.analysis.kernel_rules.rules import evaluate

BALANCED = {rules.COMPUTE: 75.0, rules.MEMORY: 70.0}


def said(rule: str, **facts: float) -> list[Message]:
    return [message for message in evaluate(facts) if message.rule == rule]


def sol(compute: float, memory: float, **more: float) -> Message:
    (message,) = said("SOLBottleneck", **{rules.COMPUTE: compute, rules.MEMORY: memory}, **more)
    return message


def test_speed_of_light() -> None:
    assert "latency" in sol(59.9, 59.9).text and sol(59.9, 10).severity == "OPT"
    assert "too small" in sol(59.9, 59.9, **{rules.WAVES: 0.9}).text
    assert "latency" in sol(59.9, 59.9, **{rules.WAVES: 1.0}).text
    assert "balance" in sol(60, 69.9).text and "balance" in sol(60, 55).text
    assert sol(60, 70).text.startswith("Memory is used more") and sol(75, 60).text.startswith("Compute is used more")
    assert sol(80, 0).text.startswith("Compute reaches 80.0 %") and sol(79, 81).text.startswith("Memory reaches")
    assert said("SOLBottleneck", **{rules.COMPUTE: 50.0}) == []


def test_issue_slots() -> None:
    assert said("IssueSlotUtilization", **{rules.ISSUE_ACTIVE: 0.6}) == []
    (plain,) = said("IssueSlotUtilization", **{rules.ISSUE_ACTIVE: 0.59})
    assert plain.speedup == pytest.approx(41) and "wait most" in plain.text
    few = said("IssueSlotUtilization", **{rules.ISSUE_ACTIVE: 0.1, rules.WARPS_ACTIVE: 0.9})[0]
    assert "less than one active warp" in few.text
    low = said("IssueSlotUtilization", **{rules.ISSUE_ACTIVE: 0.1, rules.WARPS_ACTIVE: 7.9, rules.MAX_WARPS: 10.0})[0]
    assert "achieved occupancy" in low.text
    enough = said("IssueSlotUtilization", **{rules.ISSUE_ACTIVE: 0.1, rules.WARPS_ACTIVE: 8.0, rules.MAX_WARPS: 10.0})[
        0
    ]
    assert "wait most" in enough.text
    capped = said("IssueSlotUtilization", **{rules.ISSUE_ACTIVE: 0.1, rules.COMPUTE: 70.0, rules.MEMORY: 1.0})[0]
    assert capped.speedup == pytest.approx(30)
    assert said("IssueSlotUtilization", issue_slot_utilization=10.0)[0].speedup == pytest.approx(90)  # nvprof's name, %


def stall(reason: str) -> str:
    return reason.join(rules.STALL)


def test_stalls() -> None:
    facts = {rules.ISSUE_ACTIVE: 0.79, rules.LATENCY: 10.0, stall("long_scoreboard"): 3.1, stall("barrier"): 3.0,
             stall("selected"): 9.0, stall("wait"): 5.0}  # fmt: skip
    found = said("CPIStall", **facts)
    assert [message.text.rsplit(" on ")[1] for message in found] == ["wait.", "long scoreboard."]  # largest first
    assert said("CPIStall", **{**facts, rules.ISSUE_ACTIVE: 0.8}) == []
    assert "memory dependency" in said("CPIStall", **{rules.ISSUE_ACTIVE: 0.2, "stall_memory_dependency": 55.0})[0].text
    assert said("CPIStall", **{**facts, rules.LATENCY: 0.0}) == []


def test_a_slow_pipe() -> None:
    facts = {rules.INSTRUCTIONS: 80.0, rules.ISSUED: 19.9, rules.ISSUED_MOST: 45.0}
    (message,) = said("SlowPipeLimiter", **facts)
    assert message.speedup == pytest.approx(100 * (45 - 19.9) / 45) and "19.9 %" in message.text
    (weighed,) = said("SlowPipeLimiter", **facts, **{rules.COMPUTE: 50.0})
    assert weighed.speedup == pytest.approx(message.speedup / 2)
    assert said("SlowPipeLimiter", **{**facts, rules.INSTRUCTIONS: 79.9}) == []
    assert said("SlowPipeLimiter", **{**facts, rules.ISSUED: 20.0, rules.ISSUED_MOST: 80.0}) == []
    assert said("SlowPipeLimiter", **{**facts, rules.ISSUED_MOST: 44.9}) == []
    elapsed = {name.replace("_active", "_elapsed"): value for name, value in facts.items()}
    assert said("SlowPipeLimiter", **elapsed) == [message]


@pytest.mark.parametrize("unit", ["lts", "syslts"])
def test_memory_that_is_not_the_gpus(unit: str) -> None:
    miss = unit + "__t_sectors_srcunit_tex_aperture_{}_lookup_miss.sum"
    facts = {l2_rules.TEX: 50.1, l2_rules.MISSES: 1000.0, miss.format("peer"): 401.0, miss.format("sysmem"): 400.0}
    (peer,) = said("MemoryApertureUsage", **facts)
    assert "40.1 %" in peer.text and "another GPU" in peer.text and math.isnan(peer.speedup)
    rates = {"dram__bytes.sum.per_second": 1e12, "pcie__read_bytes.sum.per_second": 2e10, "pcie__write_bytes.sum.per_second": 1e10,
             "nvlrx__bytes.sum.per_second": 5e10, "nvltx__bytes.sum.per_second": 5e10}  # fmt: skip
    (counted,) = said("MemoryApertureUsage", **facts, **rates)
    assert counted.speedup == pytest.approx(40.1 * (1 - 0.1))  # NVLink was the faster way
    (host,) = said("MemoryApertureUsage", **{**facts, **rates, miss.format("peer"): 0.0, miss.format("sysmem"): 800.0})
    assert "host" in host.text and host.speedup == pytest.approx(80 * (1 - 0.03))
    assert said("MemoryApertureUsage", **{**facts, l2_rules.TEX: 50.0}) == []
    assert said("MemoryApertureUsage", **{**facts, l2_rules.MISSES: 0.0}) == []


def test_compression_of_l2() -> None:
    facts = {l2_rules.CAPABILITY: 8.0, l2_rules.COMPRESSED: 100.0, l2_rules.COMPRESSION: 19.9, l2_rules.SECTORS: 400.0,
             l2_rules.DRAM_READ: 60.0}  # fmt: skip
    (low,) = said("MemoryL2Compression", **facts)
    assert "3200 bytes" in low.text and low.speedup == pytest.approx(0.801 * 0.75 * 60)
    assert said("MemoryL2Compression", **{**facts, l2_rules.COMPRESSION: 20.0}) == []
    assert said("MemoryL2Compression", **{**facts, l2_rules.CAPABILITY: 9.0}) == []
    assert said("MemoryL2Compression", **{**facts, l2_rules.CAPABILITY: 7.5}) == []
    (pattern,) = said("MemoryL2Compression", **{**facts, l2_rules.COMPRESSION: 50.0, l2_rules.WRITTEN: 799.0})
    assert pattern.text.startswith("Writes to compressible memory send 4.0 times")
    assert said("MemoryL2Compression", **{**facts, l2_rules.COMPRESSION: 50.0, l2_rules.WRITTEN: 800.0}) == []


def test_launch_configuration() -> None:
    rule = "LaunchConfiguration"
    assert said(rule, **{rules.BLOCK: 128.0, rules.GRID: 1000.0, rules.SMS: 100.0, rules.WAVES: 1.0}) == []
    (odd,) = said(rule, **{rules.BLOCK: 33.0})
    assert "31 lanes" in odd.text and odd.speedup == pytest.approx(100 * (1 - 33 / 64))
    (small,) = said(rule, **{rules.GRID: 25.0, rules.SMS: 100.0})
    assert small.severity == "OPT" and small.speedup == 75
    assert said(rule, **{rules.GRID: 199.0, rules.SMS: 100.0})[0].severity == "INF"
    assert said(rule, **{rules.GRID: 200.0, rules.SMS: 100.0}) == []
    assert said(rule, **{rules.WAVES: 4.5})[0].speedup == pytest.approx(20)
    assert said(rule, **{rules.WAVES: 5.5}) == [] and said(rule, **{rules.WAVES: 0.5}) == []


def test_occupancy() -> None:
    assert said("TheoreticalOccupancy", **{rules.THEORETICAL: 80.0}) == []
    assert said("TheoreticalOccupancy", **{rules.THEORETICAL: 50.0})[0].speedup == 50
    assert said("AchievedOccupancy", **{rules.THEORETICAL: 50.0, rules.OCCUPANCY: 40.0}) == []
    assert said("AchievedOccupancy", **{rules.THEORETICAL: 50.0, "achieved_occupancy": 0.25})[
        0
    ].speedup == pytest.approx(50)
    assert evaluate({}) == []


def test_pages_carry_the_messages_of_their_kernel() -> None:
    names = {"sm__throughput.avg.pct_of_peak_sustained_elapsed": 30.0,
             "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 85.0}  # fmt: skip
    r = counted([launch(1, 2), launch(2, 99)], values(1, **names) + values(2, ipc=1.0))
    rows = r.report("sections").rows
    (message,) = [row for row in rows if row["rule"] == "SOLBottleneck"]
    assert message["id"] == 1 and message["section"] == "SpeedOfLight" and message["value"] is None
    labels = {row["label"]: row["value"] for row in rows if row["id"] == 1}
    assert labels["Compute (SM) Throughput"] == 30 and labels["Registers Per Thread"] == 30
    unknown = {row["label"]: row["value"] for row in rows if row["id"] == 2}  # a launch without a kernel record
    assert unknown["Grid Size"] == 424 and "Registers Per Thread" not in unknown and unknown["ipc"] == 1
    assert math.isclose(labels["Waves Per SM"], 424 / 80 / 16)


def test_threads_of_a_warp() -> None:
    assert said("ThreadDivergence", **{rules.THREADS: 24.0, rules.THREADS_ON: 24.0}) == []
    (diverged,) = said("ThreadDivergence", **{rules.THREADS: 16.0, rules.COMPUTE: 50.0, rules.MEMORY: 90.0})
    assert diverged.speedup == pytest.approx(25) and "16.0 of the 32" in diverged.text
    assert len(said("ThreadDivergence", warp_execution_efficiency=50.0)) == 1  # nvprof's name, %
    assert "has an effect" in said("ThreadDivergence", **{rules.THREADS: 30.0, rules.THREADS_ON: 20.0})[0].text


def pipe(name: str) -> str:
    return f"sm__pipe_{name}_cycles_active.avg.pct_of_peak_sustained_active"


def test_pipes() -> None:
    (low,) = said("HighPipeUtilization", **{pipe("fma"): 19.9, pipe("alu"): 3.0})
    assert low.severity == "OPT" and low.speedup == pytest.approx(80.1) and "the busiest, fma," in low.text
    assert (
        said("HighPipeUtilization", **{pipe("fma"): 20.0}) == [] == said("HighPipeUtilization", **{pipe("fma"): 79.9})
    )
    assert said("HighPipeUtilization", **{pipe("tensor"): 80.0})[0].severity == "INF"


def arithmetic(letter: str, add: float, mul: float, fma: float, peak: float) -> dict[str, float]:
    name = "smsp__sass_thread_inst_executed_op_{}{}_pred_on.sum.per_cycle_elapsed"
    return {name.format(letter, op): value for op, value in (("add", add), ("mul", mul), ("fma", fma))} | {
        f"sm__sass_thread_inst_executed_op_{letter}fma_pred_on.sum.peak_sustained": peak
    }


def test_double_precision_and_unfused_arithmetic() -> None:
    double = arithmetic("d", 0, 0, 16, 100)  # 16 % of the peak
    (heavy,) = said("SOLFPRoofline", **double, **arithmetic("f", 0, 0, 10, 200))
    assert heavy.speedup == pytest.approx(50 * 0.16)
    assert said("SOLFPRoofline", **arithmetic("d", 0, 0, 15, 100), **arithmetic("f", 0, 0, 10, 200)) == []
    assert said("SOLFPRoofline", **double, **arithmetic("f", 0, 0, 120, 200)) == []
    assert said("FPInstructions", **arithmetic("f", 10, 10, 80, 200)) == []  # 20 of 100, halved: 10 %
    (loose,) = said("FPInstructions", **arithmetic("f", 20, 20, 60, 200))
    assert loose.speedup == pytest.approx(100 * 0.2 * 0.5) and "40 %" in loose.text


def test_shared_memory_and_sectors() -> None:
    conflicts, waves = (
        f"l1tex__data_{what}_mem_shared_op_ld.sum" for what in ("bank_conflicts_pipe_lsu", "pipe_lsu_wavefronts")
    )
    (many,) = said("SharedMemoryConflicts", **{conflicts: 10.0, waves: 100.0, rules.L1TEX: 50.0})
    assert many.speedup == pytest.approx(5)
    assert said("SharedMemoryConflicts", **{conflicts: 9.9, waves: 100.0}) == []
    assert said("SharedMemoryConflicts", **{conflicts: 9.9, waves: 0.0}) == []
    ratio = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"
    (loads,) = said("MemoryCacheAccessPattern", **{ratio: 8.0, rules.L1TEX: 60.0, rules.L2: 40.0, rules.DRAM: 70.0})
    assert loads.speedup == pytest.approx(0.75 * 70) and "8.0 of 32.0" in loads.text
    hits = {"l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct": 50.0, "lts__t_sector_op_read_hit_rate.pct": 50.0}
    (cached,) = said(
        "MemoryCacheAccessPattern", **{ratio: 8.0, rules.L1TEX: 10.0, rules.L2: 40.0, rules.DRAM: 70.0}, **hits
    )
    assert cached.speedup == pytest.approx(0.75 * 20)  # half of the loads reach L2, a quarter DRAM
    assert said("MemoryCacheAccessPattern", **{ratio: 32.0}) == []
    assert said("MemoryCacheAccessPattern", **{ratio: 8.0, ratio.replace(".ratio", ".max_rate"): 8.0}) == []
    assert "stores" in said("MemoryCacheAccessPattern", gst_efficiency=25.0)[0].text


def test_local_memory_and_imbalance() -> None:
    hit, rate = (
        "l1tex__t_sector_pipe_lsu_mem_local_op_st_hit_rate.pct",
        "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum.per_second",
    )
    assert "stores" in said("LocalMemoryUsage", **{hit: 80.0, rate: 1.0})[0].text
    assert said("LocalMemoryUsage", **{hit: 80.1, rate: 1.0}) == [] == said("LocalMemoryUsage", **{hit: 0.0, rate: 0.0})
    cycles = {rules.CYCLES_MOST: 1000.0, rules.CYCLES_ELAPSED: 1000.0}
    assert said("WorkloadImbalance", **{rules.CYCLES_ACTIVE: 950.0}, **cycles)[0].speedup == pytest.approx(5)
    assert said("WorkloadImbalance", **{rules.CYCLES_ACTIVE: 951.0}, **cycles) == []
