"""``detach(finalize=True)`` on a real GPU, in a process of its own: cuptiFinalize has crashed programs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cuptiprof.device.locate import driver_present

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not driver_present(), reason="no NVIDIA driver on this machine"),
]

SCRIPT = """
import threading
import cuptiprof, torch

x = torch.ones(1 << 16, device="cuda")
stop = threading.Event()

def launch():
    stream, y = torch.cuda.Stream(), torch.ones(1 << 10, device="cuda")
    with torch.cuda.stream(stream):
        while not stop.is_set():
            y.mul_(1)

thread = threading.Thread(target=launch)
for round in range(4):
    if round == 2:
        thread.start()  # from here another thread launches while CUPTI leaves
    with cuptiprof.profile() as prof:
        with cuptiprof.region("add"):
            for _ in range(200):
                x.add_(1)
            torch.cuda.current_stream().synchronize()
    r = prof.detach(finalize=True)
    ours = r.kernels["region"] == "add"
    assert int(ours.sum()) == 200, (round, int(ours.sum()))
    # On the run clock: the callback that gives the time was registered again.
    region = r.regions.row(0)
    assert region["start"] <= int(r.kernels["start"][ours].min()), round
    assert int(r.kernels["end"][ours].max()) <= region["end"], round
    x.add_(1)
    torch.cuda.current_stream().synchronize()
stop.set()
thread.join()
torch.cuda.synchronize()
print("whole")
"""


def test_sessions_before_and_after_cupti_left() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=240)
    assert run.returncode == 0 and run.stdout.strip() == "whole", (run.returncode, run.stderr[-2000:])
