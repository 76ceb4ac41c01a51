"""What a measurement depends on: chip, driver, versions, commit."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from cuptiprof.device.gpu import Meter
from cuptiprof.version import __version__

GIT_TIMEOUT_S = 2  # for git to answer


def environment(gpu: Meter) -> dict[str, Any]:
    """Plain values by name: "chip", "simulated", "cupti_version", "driver_version", "cuptiprof_version", "python_version",
    "torch_version" and "triton_version" (where they are in use), "host", "cpu", "commit", "commit_time" (Unix, s; 0: not known) and "changed" (of the checkout the
    program runs in; empty if there is none), "time" (Unix, s)."""
    device = gpu.device.metadata() if gpu.device else {}
    return {
        "chip": gpu.chip,
        "simulated": bool(device.get("simulated")),
        "cupti_version": device.get("cupti_version", 0),
        "driver_version": device.get("driver_version", 0),
        "cuptiprof_version": __version__,
        "python_version": platform.python_version(),
        **{
            f"{m}_version": str(getattr(sys.modules[m], "__version__", ""))
            for m in ("torch", "triton")
            if m in sys.modules
        },
        "host": platform.node(),
        "cpu": _cpu(),
        **_commit(os.getcwd()),
        "time": int(time.time()),
    }


@functools.cache
def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")), "")


@functools.cache
def _commit(folder: str) -> dict[str, Any]:
    def git(*arguments: str) -> str:
        try:
            done = subprocess.run(
                ["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=GIT_TIMEOUT_S
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = git("rev-parse", "HEAD")
    when = git("show", "--no-patch", "--format=%ct", "HEAD")
    return {
        "commit": commit,
        "commit_time": int(when) if when.isdecimal() else 0,
        "changed": bool(commit and git("status", "--porcelain", "--untracked-files=no")),
    }
