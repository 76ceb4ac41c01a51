"""Planning on the simulated device: names, passes, images, and the result codes that NVIDIA's library gives."""

from __future__ import annotations

import pytest
from counter_abi import CounterApi, refused
from counter_objects import (
    INVALID_CHIP,
    INVALID_NAME,
    INVALID_PARAMETER,
    NOT_SUPPORTED,
    ONE_PASS,
    SAMPLING,
    TWO_PASSES,
    UNKNOWN,
    Host,
    passes,
)

from cuptiprof.sim.sim_device import Fault, SimDevice


@pytest.fixture
def api(sim: SimDevice) -> CounterApi:
    return CounterApi()


def test_pass_counts(api: CounterApi) -> None:
    assert passes(api, ONE_PASS) == 1
    assert passes(api, ["lts__t_sector_hit_rate.pct"]) == 2
    assert passes(api, TWO_PASSES) == 2
    assert passes(api, [*TWO_PASSES, "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"]) == 3
    assert passes(api, ["sm__throughput.avg.pct_of_peak_sustained_elapsed"]) == 8
    assert passes(api, ["dram__throughput.avg.pct_of_peak_sustained_elapsed"]) == 1
    five = [
        *ONE_PASS[:2],
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    ]
    assert passes(api, five) == 2
    assert passes(api, ONE_PASS, kind=SAMPLING) == 1
    assert passes(api, TWO_PASSES, kind=SAMPLING) > 1
    triage = [f"{b}.sum" for b in Host(api, kind=SAMPLING).bases(0) if "TriageCompute" in b]
    assert len(triage) > 14 and passes(api, triage, kind=SAMPLING) == 1


def test_images_are_deterministic_and_checked(api: CounterApi) -> None:
    images = []
    for order in (TWO_PASSES, TWO_PASSES[::-1]):
        host = Host(api)
        host.add(order)
        images.append(host.image())
    assert bytes(images[0]) == bytes(images[1])
    broken = type(images[0]).from_buffer_copy(images[0])
    broken[40] ^= 1
    for image, size in ((broken, len(broken)), (images[0], 10), (images[0], len(images[0]) - 1)):
        with refused(INVALID_PARAMETER):
            api.call("cuptiProfilerHostGetNumOfPasses", size=size, image=image)


def test_each_add_is_its_own_group_of_passes(api: CounterApi) -> None:
    host = Host(api)
    host.add(ONE_PASS[:1])
    host.add(ONE_PASS[1:])
    image = host.image()
    assert api.call("cuptiProfilerHostGetNumOfPasses", size=len(image), image=image).passes == 2


@pytest.mark.parametrize("bad", ["zzz", "sm__inst_executed", "sm__inst_executed.sum.foo", "sm__throughput.avg"])
def test_a_refused_metric_kills_the_host_object(api: CounterApi, bad: str) -> None:
    host = Host(api)
    with refused(INVALID_PARAMETER):
        host.add([ONE_PASS[0], bad])
    with refused(UNKNOWN):
        host.add(ONE_PASS)
    with refused(UNKNOWN):
        host.image()


def test_links_and_sms_cannot_be_combined(api: CounterApi) -> None:
    for core in ("sm__inst_executed.sum", "lts__t_sectors.sum", "dram__bytes.sum"):
        with refused(NOT_SUPPORTED):
            Host(api).add(["pcie__read_bytes.sum", core])
    assert passes(api, ["pcie__read_bytes.sum", "gpu__time_duration.sum"]) == 1


def test_names_and_chips(api: CounterApi, sim: SimDevice) -> None:
    host = Host(api)
    assert host.properties("sm__inst_executed.avg.per_cycle_active") == (
        *("# of warp instructions executed", "sm", "instruction/gpc_cycle"),
        0,
    )
    assert len(host.subs("sm__inst_executed", 0)) == 44
    assert host.subs("l1tex__t_sector_hit_rate", 1) == [".max_rate", ".pct", ".ratio"]
    assert len(host.subs("sm__throughput", 2)) == 8
    with refused(INVALID_NAME):
        host.properties("zzz")
    with refused(INVALID_CHIP):
        Host(api, "gh100")
    with refused(NOT_SUPPORTED):
        Host(api, "GV100", SAMPLING)
    with refused(INVALID_NAME):  # Hopper's
        Host(api, "GA100").properties("smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio")
    sim.inject(Fault.MISSING_METRIC, "sm__inst_executed")
    with refused(INVALID_NAME):
        host.properties("sm__inst_executed.sum")
    for chip, name in (
        ("V100", b"GV100"),
        ("A100", b"GA100"),
        ("L4", b"AD104"),
        ("H200", b"GH100"),
        ("B200", b"GB100"),
    ):
        sim.reset(chip=chip)
        assert api.call("cuptiDeviceGetChipName", device=0).chip == name
