"""What all tests share."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from cuptiprof.sim.sim_device import SimDevice


def pytest_configure() -> None:
    """Child processes shall import the installed package, not the sources beside it, which lack the native module: the root, where
    the benchmarks are, comes last. Not earlier: pytest looks for `testpaths` from where it was started."""
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    os.chdir(Path(__file__).parent)


# A job in the background of a shell script, and what some CI starts, ignores Ctrl-C, and so would all children: Python then has no
# handler of its own, and a test that interrupts would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# readline, which pytest imports, tells child processes (and not os.environ) how wide it thinks the terminal is: reports would be cut to that.
for name in ("COLUMNS", "LINES"):
    if name not in os.environ:
        os.unsetenv(name)

# PyTorch's operators run on the host here, as small ones: a second thread for each of them only spins, in each child process too.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# How long an example takes is the machine's affair.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

pytest_plugins = ("browser.opened_pages",)

DATA = Path(__file__).parent / "data"
PACKAGE_DATA = Path(__import__("cuptiprof").__file__).parent / "sim" / "traces"


def trace_path(name: str) -> Path:
    """A recorded torch.profiler trace by its short name."""
    file = f"{name}.json.gz"
    return PACKAGE_DATA / file if (PACKAGE_DATA / file).is_file() else DATA / "traces" / file


@pytest.fixture
def sim() -> Iterator[SimDevice]:
    """The simulated device, fresh, virtual clock; faults are gone afterwards."""
    device = SimDevice()
    device.clear_faults()
    device.reset(virtual_clock=True)
    yield device
    device.clear_faults()


@pytest.fixture
def memory() -> Iterator[Any]:
    """The files of ``memory://``, none at first."""
    import fsspec

    files = fsspec.filesystem("memory")
    files.store.clear()
    files.pseudo_dirs[:] = [""]
    yield files
    files.store.clear()


@pytest.fixture(autouse=True)
def no_scripts_left() -> Iterator[None]:
    """What one test scripts (faults, values of counters) another one does not meet."""
    yield
    device = SimDevice()
    device.clear_faults()
    device.clear_counters()
