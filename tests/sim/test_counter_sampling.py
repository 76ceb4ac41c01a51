"""PM sampling on the simulated device: every interval, whatever runs, through a buffer that may overflow."""

from __future__ import annotations

import numpy as np
import pytest
from counter_abi import CounterApi, refused
from counter_objects import (
    INVALID_OPERATION,
    INVALID_PARAMETER,
    KEEP_LATEST,
    NOT_SUPPORTED,
    OUT_OF_MEMORY,
    RANGE,
    SYSCLK,
    Host,
    Sampler,
)

from cuptiprof.errors import DeviceError
from cuptiprof.sim.sim_device import Op, SimDevice

FULL, END = 1, 2  # CUpti_PmSampling_DecodeStopReason
METRICS = ["sm__inst_executed.sum", "dram__bytes_read.sum", "sm__cycles_elapsed.avg", "gpu__time_duration.sum"]


def timed_kernel(sim: SimDevice, name: str, start: int, end: int, **fields: object) -> np.ndarray:
    return sim.ops(1, Op.KERNEL, name=name, flags=3, api_start=start, gpu_start=start, gpu_end=end, **fields)


def test_samples_are_the_exact_integral(sim: SimDevice) -> None:
    api = CounterApi()
    sampler = Sampler(api, METRICS)
    sampler.do("Start")
    t0 = sim.now()
    # One within a sample, one over several, one beside it in another context: all of the device count.
    ops = [
        timed_kernel(sim, "a", t0 + 10_000, t0 + 60_000),
        timed_kernel(sim, "b", t0 + 150_000, t0 + 375_000),
        timed_kernel(sim, "c", t0 + 250_000, t0 + 350_000, context=2),
    ]
    for op in ops:
        sim.run(op)
    sim.advance(t0 + 550_000)
    p = sampler.decode()
    assert (p.reason, p.overflow, sampler.count()) == (END, 0, 5)
    truth = np.array([[sim.true_metric(m, op)[0] for m in METRICS[:2]] for op in ops])
    shares = np.array([[1, 0, 0, 0, 0], [0, 50 / 225, 100 / 225, 75 / 225, 0], [0, 0, 0.5, 0.5, 0]])
    for i in range(5):
        assert sampler.times(i) == (t0 + i * 100_000, t0 + (i + 1) * 100_000)
        values = sampler.values(i)
        assert values[:2] == pytest.approx(list(shares[:, i] @ truth), rel=1e-12)
        assert values[2:] == [pytest.approx(198_000), 100_000]
    # Nothing is lost between samples.
    total = sum(np.array(sampler.values(i)[:2]) for i in range(5))
    assert total == pytest.approx(truth.sum(axis=0), rel=1e-12)
    sampler.do("Stop")


def test_the_first_sample_has_what_ran_before_it_too(sim: SimDevice) -> None:
    """As on hardware, where the counters run on while nothing is sampled: whoever reads samples must drop it."""
    sampler = Sampler(CounterApi(), METRICS)
    t0 = sim.now()
    ended = timed_kernel(sim, "ended", t0, t0 + 40_000)
    across = timed_kernel(sim, "across", t0 + 50_000, t0 + 350_000)  # sampling starts 100 us into it
    for op in (ended, across):
        sim.run(op)
    sim.advance(t0 + 150_000)
    sampler.do("Start")
    assert sim.now() == t0 + 150_000
    sim.advance(t0 + 450_000)
    sampler.decode()
    whole, third = (sim.true_metric(METRICS[0], op)[0] for op in (ended, across))
    third /= 3
    assert [sampler.values(i)[0] for i in range(3)] == [pytest.approx(v) for v in (whole + 2 * third, third, 0)]
    assert sampler.values(0)[2:] == [pytest.approx(198_000), 100_000]
    sampler.do("Stop")
    # Again after a stop, and not twice.
    again = timed_kernel(sim, "again", t0 + 500_000, t0 + 510_000)
    sim.run(again)
    sim.advance(t0 + 600_000)
    sampler.clear()
    sampler.do("Start")
    sim.advance(t0 + 800_000)
    sampler.decode()
    assert [sampler.values(i)[0] for i in range(2)] == [pytest.approx(sim.true_metric(METRICS[0], again)[0]), 0]
    sampler.do("Stop")


def test_decoding_goes_on_where_it_stopped(sim: SimDevice) -> None:
    sampler = Sampler(CounterApi(), METRICS, samples=4)
    sampler.do("Start")
    t0 = sim.now()
    sim.run(timed_kernel(sim, "long", t0, t0 + 1_000_000))
    per_sample = sim.true_metric(METRICS[0], timed_kernel(sim, "long", t0, t0 + 1_000_000))[0] / 10
    sim.advance(t0 + 650_000)
    assert (sampler.decode().reason, sampler.count()) == (FULL, 4)
    sampler.clear()
    sim.advance(t0 + 750_000)
    assert (sampler.decode().reason, sampler.count()) == (END, 3)
    # After a full image comes a slot that was begun and not filled: its sample is lost.
    assert [sampler.times(i) for i in range(3)] == [
        (0, 0),
        *((t0 + k * 100_000, t0 + (k + 1) * 100_000) for k in (5, 6)),
    ]
    assert [sampler.values(i)[0] for i in (1, 2)] == [pytest.approx(per_sample)] * 2
    sampler.clear()
    sim.advance(t0 + 1_000_000)
    sampler.do("Stop")  # what was taken stays
    assert (sampler.decode().reason, sampler.count()) == (FULL, 4)
    assert [sampler.times(i)[0] for i in range(3)] == [t0 + k * 100_000 for k in (7, 8, 9)]
    tail = [sampler.times(3)]
    sampler.clear()
    assert (sampler.decode().reason, sampler.count()) == (END, 1)
    tail.append(sampler.times(0))
    assert tail == [(t0 + 1_000_000, t0 + 1_000_000)] * 2  # a stop leaves records of no length
    assert sim.truth()["samples_produced"] == 10
    assert sim.truth()["samples_lost"] == 1


def test_after_an_overflow_nothing_comes_until_a_new_start(sim: SimDevice) -> None:
    sampler = Sampler(CounterApi(), METRICS, capacity=5)
    sampler.do("Start")
    t0 = sim.now()
    sim.advance(t0 + 1_200_000)
    with refused(OUT_OF_MEMORY) as caught:
        sampler.decode()
    assert caught[0].params.overflow == 1
    assert (sampler.count(), sim.truth()["samples_produced"], sim.truth()["samples_lost"]) == (0, 12, 12)
    sim.advance(t0 + 1_400_000)
    with refused(OUT_OF_MEMORY) as caught:
        sampler.decode()
    assert caught[0].params.overflow == 0 and sampler.count() == 0
    sampler.do("Stop")
    sampler.do("Start")
    sim.advance(t0 + 1_600_000)
    assert sampler.decode().overflow == 0
    assert [sampler.times(i)[0] for i in range(sampler.count())] == [t0 + 1_400_000, t0 + 1_500_000]
    sampler.do("Stop")


def test_a_ring_keeps_the_latest(sim: SimDevice) -> None:
    sampler = Sampler(CounterApi(), METRICS, capacity=5, append=KEEP_LATEST)
    sampler.do("Start")
    t0 = sim.now()
    sim.run(timed_kernel(sim, "k", t0 + 1_000_000, t0 + 1_100_000))
    sim.advance(t0 + 1_200_000)
    p = sampler.decode()
    assert (p.reason, p.overflow, sampler.count()) == (END, 0, 5)
    assert [sampler.times(i)[0] for i in range(5)] == [t0 + k * 100_000 for k in range(7, 12)]
    assert [sampler.values(i)[0] > 0 for i in range(5)] == [False, False, False, True, False]
    assert sim.truth()["samples_lost"] == 7
    sampler.do("Stop")


def test_triggers_by_chip(sim: SimDevice) -> None:
    api = CounterApi()
    sim.reset(chip="A100", virtual_clock=True)
    with refused(NOT_SUPPORTED):
        Sampler(api, METRICS, chip="GA100")
    sim.reset(chip="A100", virtual_clock=True)
    sampler = Sampler(api, METRICS, chip="GA100", trigger=SYSCLK, interval=112_800)  # 0.8 * 1.41 GHz
    sampler.do("Start")
    sim.advance(sim.now() + 300_000)
    sampler.decode()
    assert sampler.count() == 3
    assert sampler.times(1)[1] - sampler.times(1)[0] == 100_000
    sampler.do("Stop")
    sim.reset(chip="V100", virtual_clock=True)
    api.call("cuptiProfilerInitialize")
    with refused(NOT_SUPPORTED):
        api.call("cuptiPmSamplingEnable", device=0)


def test_wrong_order_and_configurations(sim: SimDevice) -> None:
    api = CounterApi()
    sampler = Sampler(api, METRICS)
    with refused(INVALID_OPERATION):
        sampler.do("Stop")
    with refused(INVALID_OPERATION):
        api.call("cuptiPmSamplingEnable", device=0)
    with refused(INVALID_PARAMETER):
        api.call("cuptiPmSamplingEnable", device=1)
    several = Host(api, kind=1)
    several.add([*METRICS, "lts__t_sector_hit_rate.pct"])
    ranges = Host(api, kind=RANGE)
    ranges.add(METRICS)
    for host, code in ((several, NOT_SUPPORTED), (ranges, INVALID_PARAMETER)):
        image = host.image()
        with refused(code):
            sampler.set_config(config=image, config_size=len(image))
    for change in ({"interval": 0}, {"buffer_size": 100}, {"trigger": 2}, {"config_size": 8}):
        with refused(INVALID_PARAMETER):
            sampler.set_config(**change)
    sampler.do("Start")
    for wrong in (lambda: sampler.do("Start"), sampler.set_config):
        with refused(INVALID_OPERATION):
            wrong()
    with pytest.raises(DeviceError, match="in use"):
        sim.reset()
    sampler.do("Disable")  # stops too
    with refused(INVALID_PARAMETER):
        sampler.do("Start")
    sim.reset(virtual_clock=True)


def test_each_device_has_its_own_samples(sim: SimDevice) -> None:
    sim.reset(devices=2, virtual_clock=True)
    api = CounterApi()
    samplers = [Sampler(api, METRICS, device=d) for d in range(2)]
    for s in samplers:
        s.do("Start")
    t0 = sim.now()
    sim.run(timed_kernel(sim, "k", t0, t0 + 100_000, device=1))
    sim.advance(t0 + 100_000)
    for s in samplers:
        s.decode()
        s.do("Stop")
    assert [s.values(0)[0] > 0 for s in samplers] == [False, True]


def test_the_real_clock_samples_too(sim: SimDevice) -> None:
    sim.reset()
    sampler = Sampler(CounterApi(), METRICS, interval=1_000_000)
    sampler.do("Start")
    t0 = sim.now()
    sim.launch("k", duration_ns=5_000_000, count=2)
    sim.synchronize()
    while sim.now() < t0 + 12_000_000:
        pass
    sampler.do("Stop")
    sampler.decode()
    op = sim.ops(1, Op.KERNEL, name="k", duration_ns=5_000_000, grid=(1, 1, 1), block=(128, 1, 1))
    whole = [i for i in range(sampler.count()) if sampler.times(i)[1] > sampler.times(i)[0]]
    total = sum(sampler.values(i)[0] for i in whole)
    assert total == pytest.approx(2 * sim.true_metric(METRICS[0], op)[0], rel=1e-9)
