"""native.cpp: launches from C against a driver that only counts them, and the bare collector against the stand-in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.overhead import native
from benchmarks.overhead.conditions import CONCURRENT_KERNEL
from cuptiprof.sim.sim_device import SimDevice, library_path

ROOT = Path(__file__).resolve().parents[2]
DRIVER = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int launches, waits, current;
int cuInit(unsigned f) { return 0; }
int cuDevicePrimaryCtxRetain(void** c, int d) { *c = &current; return d; }
int cuCtxSetCurrent(void* c) { current = c == &current; return 0; }
int cuModuleLoadData(void** m, const char* ptx) { *m = &launches; return !strstr(ptx, ".visible .entry empty"); }
int cuModuleGetFunction(void** f, void* m, const char* name) { *f = &waits; return strcmp(name, "empty"); }
int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void* s, void** a, void** e) {
  if (f != &waits || gx * gy * gz != 1 || bx != 32 || !current) return 1;
  return ++launches > 5000 ? 700 : 0;
}
int cuCtxSynchronize(void) { return ++waits, 0; }
int told(int what) { return what ? waits : launches; }
"""
LAUNCH = """
import ctypes, json, sys
from pathlib import Path
sys.path.append(sys.argv[1])
from benchmarks.overhead import native
kernel = native.EmptyKernel(Path(sys.argv[2]))
kernel.launch(1000)
ns = kernel.launch_timed(500)
kernel.synchronize()
driver = ctypes.CDLL("libcuda.so.1")
out = {"launches": driver.told(0), "waits": driver.told(1), "timed": len(ns), "longest": int(ns.max()), "sum": int(ns.sum())}
try: kernel.launch(4000)
except OSError as e: out["error"] = str(e)
print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def library() -> Path:
    made = native.build()
    assert isinstance(made, Path), made
    return made


def test_each_launch_is_made_and_timed(library: Path, tmp_path: Path) -> None:
    (tmp_path / "driver.c").write_text(DRIVER)
    command = [
        "cc",
        "-shared",
        "-fPIC",
        "-w",
        "-Wl,-soname,libcuda.so.1",
        "-o",
        tmp_path / "libcuda.so.1",
        tmp_path / "driver.c",
    ]
    subprocess.run(command, check=True)
    done = subprocess.run(
        [sys.executable, "-c", LAUNCH, str(ROOT), str(library)],
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    out = json.loads(done.stdout or "{}")
    assert out, done.stderr
    assert (out["launches"], out["waits"], out["timed"]) == (1500, 1, 500)
    assert out["sum"] > 0 and out["longest"] < 1e9
    assert out["error"] == "CUDA driver: CUresult 700"


@pytest.mark.parametrize(
    ("way", "seen", "joined"), [(native.Joining.BY_CALLBACK, 1200, 0), (native.Joining.BY_EXTERNAL_ID, 12, 1200)]
)
def test_both_ways_of_joining_see_every_launch(library: Path, sim: SimDevice, way: int, seen: int, joined: int) -> None:
    bare = native.BareCollector(library, str(library_path()), CONCURRENT_KERNEL)
    join = native.Joining(library, str(library_path()), way)
    bare.start()
    join.start()
    for _ in range(12):
        with join.region("step"):
            sim.launch("k", count=100)
    sim.synchronize()
    join.stop()
    received = bare.stop()
    assert join.seen == seen
    # Of each launch: its kernel, and by external ID the record of its call and the one that joins the two.
    assert received == 1200 * 216 + joined * (40 + 24)


def test_the_bare_collector_asks_for_as_many_buffers_as_the_records_fill(library: Path, sim: SimDevice) -> None:
    for size, least in (
        (64 << 10, 32),
        (1 << 20, 2),
        (64 << 10, 32),
    ):  # back to small ones: no buffer of the other size is handed out
        bare = native.BareCollector(library, str(library_path()), CONCURRENT_KERNEL, size)
        bare.start()
        sim.launch("k", count=10_000)
        sim.synchronize()
        assert bare.stop() == 10_000 * 216
        assert least <= bare.requested <= 2 * least + 4
