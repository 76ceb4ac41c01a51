"""From what the probe and the surroundings tell to a report."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import Any

from cuptiprof import _core
from cuptiprof.device.locate import SONAMES
from cuptiprof.doctor import surroundings
from cuptiprof.doctor.child import TIMEOUT_S, Outcome, run_probe
from cuptiprof.doctor.diagnosis import Diagnosis, Feature
from cuptiprof.errors import DeviceError

_SIM_HINT = 'without a GPU use device="sim" (`cuptiprof doctor --device sim`)'
_NO_DRIVER_HINT = "install the NVIDIA driver, or start the container with --gpus all; " + _SIM_HINT
_MODULE_ONLY_HINT = (
    "the kernel module is loaded but libcuda.so.1 is not to be found: in a container start it with --gpus all and "
    "NVIDIA_DRIVER_CAPABILITIES=compute,utility; otherwise install the driver's user part (libcuda1, nvidia-utils)"
)
_PRIVILEGES_HINT = _core.error_text(35)[2]
_STEPS = {
    "start": "starting",
    "driver": "loading the driver",
    "init": "cuInit",
    "locate": "looking for libcupti",
    "library": "loading libcupti",
    "subscribe": "subscribing to CUPTI",
    "trial": "recording one copy, one set and one kernel",
    "activities": "switching on each activity",
    "exit": "its exit",
}


def diagnose(device: str = "cuda", *, timeout_s: float = TIMEOUT_S) -> Diagnosis:
    """Examine this machine.

    Args:
        device: "cuda", or "sim" to examine the simulated device.
        timeout_s: how long the child process may take.

    Raises:
        DeviceError: an unknown device. Nothing else: what does not work is in the report.
    """
    if device not in ("cuda", "sim"):
        raise DeviceError(f"unknown device {device!r}", hint='one of: "cuda", "sim"')
    loaded = next(filter(None, map(_core.loaded_library, SONAMES)), "") if device == "cuda" else ""
    outcome = run_probe(device, loaded, timeout_s)
    report = Diagnosis(device)
    if device == "cuda":
        _driver(report, outcome)
    _libcupti(report, outcome)
    _death(report, outcome)
    _privileges(report)
    report.trial = outcome.get("trial")
    report.can_trace = bool(report.trial.get("kernels"))
    _trial(report, outcome)
    _features(report, outcome)
    if device == "cuda":
        report.findings += surroundings.other_tools()
    report.findings = [replace(f, hint=_here(f.hint)) for f in report.findings]
    report.features = [replace(f, hint=_here(f.hint)) for f in report.features]
    order = ("problem", "warning", "note")
    report.findings.sort(key=lambda f: order.index(f.level))
    return report


def _here(hint: str) -> str:
    """A hint for somebody who is running the doctor already."""
    return re.sub(r"(^|;| and) run `cuptiprof doctor`( and report it)?", "", hint)


def _cuda(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}" if version else ""


def _driver(report: Diagnosis, outcome: Outcome) -> None:
    data, init = outcome.get("driver"), outcome.get("init")
    module = surroundings.kernel_module_version()
    report.driver = {
        "version": _cuda(data.get("version", 0)),
        "path": data.get("path", ""),
        "how": "cuDriverGetVersion" if data.get("version") else "",
        "kernel_module": module,
        "error": data.get("error") or init.get("error", ""),
    }
    report.gpus = init.get("gpus", [])
    if data.get("error"):
        hint = data.get("hint") or (_MODULE_ONLY_HINT if module else _NO_DRIVER_HINT)
        report.add("problem", data["error"], hint)
    elif init.get("error"):
        report.add("problem", init["error"], init["hint"])
    elif "init" in outcome.steps and not report.gpus:
        report.add("problem", "the driver sees no GPU", "check CUDA_VISIBLE_DEVICES and `nvidia-smi`")
    for gpu in report.gpus:
        if "MIG" in gpu["name"]:
            report.add("note", f"GPU {gpu['ordinal']} is a MIG instance: hardware counters may need the whole GPU")
    if surroundings.is_wsl():
        report.add(
            "note",
            "this is WSL: hardware counters need a recent Windows driver with counters allowed for all users",
        )


def _libcupti(report: Diagnosis, outcome: Outcome) -> None:
    located, library = outcome.get("locate"), outcome.get("library")
    path = library.get("path") or located.get("path", "")
    error = located.get("error") or library.get("error", "")
    report.libcupti = {
        "path": path,
        "how": located.get("how", ""),
        "cuda": library.get("cuda") or located.get("version", ""),
        "version_from": "cuptiGetVersion" if library.get("cuda") else located.get("version_from", ""),
        "version": library.get("version", 0),
        "error": error,
        "others": located.get("others", []),
    }
    if error:
        report.add("problem", error, located.get("hint") or library.get("hint", ""))
    if library.get("not_called"):
        report.add("note", library["not_called"])
    if path and not report.simulated:
        folder = os.path.dirname(path)
        for part in report.nvperf:
            file = os.path.join(folder, f"libnvperf_{part}.so")
            report.nvperf[part] = file if os.path.isfile(file) else None
    major, driver = report.libcupti["cuda"].split(".")[0], report.driver.get("version", "").split(".")[0]
    if major.isdigit() and driver.isdigit() and int(major) > int(driver):
        report.add(
            "warning",
            f"libcupti is of CUDA {report.libcupti['cuda']}, the driver supports up to {report.driver['version']}",
            f"pip install nvidia-cuda-cupti-cu{driver}, or update the driver",
        )


def _death(report: Diagnosis, outcome: Outcome) -> None:
    if not outcome.died_in:
        return
    library = report.libcupti["path"] or "libcupti"
    level = "warning" if outcome.get("trial").get("kernels") else "problem"
    hint = "update the NVIDIA driver"
    if outcome.died_in not in ("start", "driver", "init"):
        hint = f"{library} does not get on with this driver: install another nvidia-cuda-cupti, or set CUPTIPROF_CUPTI"
    report.add(level, f"the probe {outcome.death} while {_STEPS[outcome.died_in]}", hint)


def _privileges(report: Diagnosis) -> None:
    if report.simulated:
        return
    report.privileges = {
        "admin_only": surroundings.admin_only(),
        "cap_sys_admin": surroundings.has_sys_admin(),
    }
    if report.privileges["admin_only"] and not report.privileges["cap_sys_admin"]:
        report.add("warning", "the driver keeps hardware counters for administrators", _PRIVILEGES_HINT)


def _trial(report: Diagnosis, outcome: Outcome) -> None:
    for step in ("subscribe", "trial"):
        data = outcome.get(step)
        if data.get("error"):
            report.add("problem", data["error"], data.get("hint", ""))
            return
    if report.trial and not report.can_trace:
        report.add(
            "problem",
            f"a kernel was launched and no record of it came ({_counts(report.trial)})",
            "look for another profiler on this GPU; please report this with the output of `cuptiprof doctor --json`",
        )
    if report.can_trace and not (report.trial["memcpys"] and report.trial["memsets"]):
        report.add("warning", f"some records of the trial did not come ({_counts(report.trial)})")


def _counts(trial: dict[str, Any]) -> str:
    return ", ".join(f"{trial[t]} {t}" for t in ("kernels", "memcpys", "memsets"))


def _features(report: Diagnosis, outcome: Outcome) -> None:
    problem = next((f for f in report.findings if f.level == "problem"), None)
    tracing = "tracing of kernels, copies and API calls"
    if report.can_trace or problem is None:
        report.features.append(Feature(tracing, report.can_trace))
    else:
        report.features.append(Feature(tracing, False, problem.what, problem.hint))
    for name, data in outcome.get("activities").items():
        report.features.append(Feature(f"activity {name}", not data, data.get("error", ""), data.get("hint", "")))
    for f in outcome.get("library").get("features", []):
        why = f"libcupti lacks {f['missing']}: {f['without']}" if not f["works"] else ""
        hint = f"use libcupti of CUDA {f['since']} or newer" if f["since"] and not f["works"] else ""
        # What the library has is not known to work before a session has recorded something.
        works = (True if report.can_trace else None) if f["works"] else False
        report.features.append(Feature(f["name"], works, why, hint))
