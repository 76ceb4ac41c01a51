"""When buffers come back: of threads that ended, of work that still runs, at the end; and a program short of memory."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable

import cuptiprof
from cuptiprof.sim.sim_device import Fault, Flag, Op, SimDevice

LONG = 400_000_000  # ns of the real clock


def one_after_the_other(count: int, work: Callable[[], None]) -> None:
    for _ in range(count):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()


def test_kernels_of_short_lived_threads_are_kept(sim: SimDevice) -> None:
    """Each thread's buffer comes back only when CUPTI is asked: 400 threads want three times the buffers there are."""
    with cuptiprof.profile(device="sim", activities=["kernel"]) as prof:
        one_after_the_other(400, lambda: sim.launch("k", count=5))
    r = prof.result()
    assert len(r.kernels) + r.metadata["launches"]["kernels_lost_in_pool"] == 2000
    assert r.losses["unreconciled_launches"] == 0
    assert len(r.kernels) >= 1900  # the decoder is asked in time, which on a busy machine can be late


def test_kernels_of_short_lived_threads_under_a_small_budget(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", activities=["kernel"], budget="8 MB") as prof:
        for _ in range(40):
            one_after_the_other(10, lambda: sim.launch("k", count=5))
            time.sleep(0.01)
    r = prof.result()
    lost = r.metadata["launches"]["kernels_lost_in_pool"]
    assert len(r.kernels) + lost == 2000 and r.losses["unreconciled_launches"] == 0
    assert len(r.kernels) > 400  # four buffers hold twenty


def test_records_come_while_the_session_runs(sim: SimDevice) -> None:
    """A buffer that is not full comes back too, so that a slow thread's records find their launches."""
    with cuptiprof.profile(device="sim", activities=["kernel"]) as prof:
        sim.launch("k", count=3)
        sim.synchronize()
        deadline = time.monotonic() + 20
        while prof._session.counts()["kernels_received"] < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert prof._session.counts()["kernels_received"] == 3


def test_a_plain_flush_withholds_a_buffer_with_one_unfinished_record(sim: SimDevice) -> None:
    """What the stand-in must do for the test below to mean anything."""
    with cuptiprof.profile(device="sim", activities=["kernel"]) as prof:
        sim.inject(Fault.FAIL_CALL, "cuptiActivityFlushAll", a=999)  # the decoder's own
        sim.launch("short", count=10)
        sim.synchronize()
        sim.launch("long", duration_ns=LONG)
        sim.clear_faults()
        for _ in range(10):
            assert sim._lib.cuptiActivityFlushAll(0) == 0
            time.sleep(0.01)
        assert prof._session.counts()["kernels_received"] == 0
    assert len(prof.result().kernels) == 11


def test_a_session_without_launches_ends_with_a_forced_flush(sim: SimDevice) -> None:
    """Nothing is missing by count, and a buffer with unfinished work in a context we never saw still comes back."""
    with cuptiprof.profile(device="sim", activities=["memcpy"]) as prof:
        sim.call(Op.MEMCPY, bytes=100, copy_kind=1)
        sim.call(Op.MEMCPY, bytes=100, copy_kind=1, context=9, flags=Flag.NO_API | Flag.ASYNC, duration_ns=LONG)
    r = prof.result()
    assert len(r.memcpys) == 2 and r.losses["invalid_timestamps"] == 1  # the second without an end
    assert sim.truth()["buffers_outstanding"] == 0


def test_pause_waits_for_what_runs_and_brings_it_home(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", activities=["kernel", "sync", "driver"]) as prof:
        sim.launch("long", duration_ns=LONG)
        prof.pause()
        assert sim.truth()["buffers_outstanding"] == 0
        sim.launch("paused", count=5)
        prof.resume()
        sim.launch("after", count=2)
    r = prof.result()
    assert sorted(r.kernels["name"]) == ["after", "after", "long"]
    assert r.kernels["duration"].max() == LONG
    assert len(r.synchronizations) == 0  # our own waits leave no trace
    assert not r.losses, r.losses.line()


def test_the_window_of_the_profiler_calls_does_too(sim: SimDevice) -> None:
    with cuptiprof.profile(device="sim", activities=["kernel"], profile_from_start=False) as prof:
        sim.call(Op.PROFILER_START)
        sim.launch("long", duration_ns=LONG)
        sim.call(Op.PROFILER_STOP)
        assert sim.truth()["buffers_outstanding"] == 0
        sim.launch("outside", count=5)
    r = prof.result()
    assert list(r.kernels["name"]) == ["long"] and not r.losses


SHORT_OF_MEMORY = """
import resource, time
import cuptiprof
from cuptiprof.sim.sim_device import SimDevice

sim = SimDevice()
sim.reset(virtual_clock=True)
prof = cuptiprof.profile(device="sim", activities=["kernel"], budget="512 MB").start()
texts = [f"kernel_{i}_" + "x" * 2000 for i in range(40_000)]
ops = [sim.ops(1, 1, name=t) for t in texts]
for o in ops:  # the stand-in keeps a copy of each name: before the limit
    o["flags"] = 16
    sim.run(o)
    o["flags"] = 0
sim.launch("warm", count=20_000)  # and it starts the thread that delivers
sim.synchronize()
launched = 20_000
with open("/proc/self/statm") as f:
    size = int(f.read().split()[0]) * 4096
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
resource.setrlimit(resource.RLIMIT_AS, (size + (8 << 20), hard))
for o in ops:
    sim.run(o)
    launched += 1
sim.synchronize()
came = lambda counts: counts["kernels_received"] + counts["kernels_lost_in_pool"]
while came(prof._session.counts()) < launched:  # the decoder meets the limit, however late it is
    time.sleep(0.001)
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
r = prof.stop()
counts = r.metadata["launches"]
lost = r.losses["out_of_memory"] + r.losses["budget_evicted"] + counts["kernels_lost_in_pool"]
silent = len(ops)  # launches without a record, above
assert counts["launches"] == launched + silent
assert len(r.kernels) + lost + r.losses["unreconciled_launches"] == counts["launches"], dict(r.losses)
assert r.losses["unreconciled_launches"] == silent
assert r.losses["out_of_memory"] > 0 and "memory ran out" in r.metadata["note"]
with cuptiprof.profile(device="sim", activities=["kernel"]) as prof:
    SimDevice().launch("k", count=10)
assert len(prof.result().kernels) == 10
"""


def test_memory_that_runs_out_does_not_end_the_program() -> None:
    """RLIMIT_AS; every allocation in turn fails in ``tests/native/decoder_memory.cpp``."""
    done = subprocess.run([sys.executable, "-c", SHORT_OF_MEMORY], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
