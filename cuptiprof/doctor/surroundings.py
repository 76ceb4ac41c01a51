"""What can be read about this machine and process without calling any library. Every path is under `root` for tests."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from cuptiprof.device.nvtx_injection import VARIABLE, is_ours
from cuptiprof.doctor.diagnosis import Finding

CAP_SYS_ADMIN = 21
_INJECTION = {
    "CUDA_INJECTION64_PATH": "a tool is injected into every CUDA process",
    "CUDA_INJECTION32_PATH": "a tool is injected into every CUDA process",
    VARIABLE: "another tool has what NVTX tells",
    "NSYS_PROFILING_SESSION_ID": "this runs under Nsight Systems",
    "COMPUTE_PROFILE": "the old command-line profiler is switched on",
    "CUDA_PROFILE": "the old command-line profiler is switched on",
}
_TOOLS = ("nsys", "ncu", "nv-nsight-cu-cli", "nvprof", "compute-sanitizer", "cuda-gdb", "nsys-launcher")
_TOOL_LIBRARIES = re.compile(
    r"/(libToolsInjection\S*|libcuinj\S*|libnvToolsInjection\S*|libInterceptorInjectionTarget\S*|libsanitizer-\S*)$"
)


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def kernel_module_version(root: Path = Path("/")) -> str:
    """Version of the loaded nvidia kernel module ("580.65.06"); "": none is loaded, or it is not to be seen."""
    match = re.search(
        r"(?:Kernel Module|x86_64|aarch64)\D*?(\d+\.\d+(?:\.\d+)?)",
        _read(root / "proc/driver/nvidia/version"),
    )
    return match.group(1) if match else ""


def admin_only(root: Path = Path("/")) -> bool | None:
    """Whether the driver keeps hardware counters for administrators; None: the driver does not tell."""
    match = re.search(r"^RmProfilingAdminOnly:\s*(\d+)", _read(root / "proc/driver/nvidia/params"), re.MULTILINE)
    return match.group(1) != "0" if match else None


def has_sys_admin(root: Path = Path("/")) -> bool | None:
    """Whether this process has CAP_SYS_ADMIN; None: unknown."""
    match = re.search(r"^CapEff:\s*([0-9a-fA-F]+)", _read(root / "proc/self/status"), re.MULTILINE)
    return bool(int(match.group(1), 16) >> CAP_SYS_ADMIN & 1) if match else None


def is_wsl(root: Path = Path("/")) -> bool:
    """Whether this is the Windows Subsystem for Linux."""
    return "microsoft" in _read(root / "proc/version").lower() or (root / "dev/dxg").exists()


def other_tools(environment: Mapping[str, str] = os.environ, root: Path = Path("/")) -> list[Finding]:
    """Signs of other tools that may hold CUPTI in this process."""
    found = []
    for variable, meaning in _INJECTION.items():
        value = environment.get(variable)
        if variable == VARIABLE and is_ours(value or ""):
            found.append(Finding("note", f"NVTX ranges go to cuptiprof ({value})"))
        elif value and value != "0":
            found.append(
                Finding(
                    "warning",
                    f"{meaning} ({variable}={value})",
                    f"unset {variable} if a session cannot start",
                )
            )
    preload = environment.get("LD_PRELOAD", "")
    if re.search(r"nsight|nsys|cupti|cuinj|sanitizer", preload, re.IGNORECASE):
        found.append(Finding("warning", f"a tool is preloaded (LD_PRELOAD={preload})", "start without it"))
    tool = _tool_above(root)
    if tool:
        found.append(Finding("warning", f"this runs under {tool}", "one tool at a time can hold CUPTI: run without it"))
    maps = {line.split(maxsplit=5)[-1] for line in _read(root / "proc/self/maps").splitlines() if line.count("/") > 0}
    for path in sorted(maps):
        match = _TOOL_LIBRARIES.search(path)
        if match:
            found.append(Finding("warning", f"a profiling tool is loaded in this process ({path})"))
    copies = sorted(p for p in maps if re.search(r"/libcupti\.so[.\d]*$", p))
    if len(copies) > 1:
        what = f"{len(copies)} copies of libcupti are loaded in this process: {', '.join(copies)}"
        found.append(Finding("warning", what, "tools that use different copies do not see each other"))
    return found


def _tool_above(root: Path) -> str:
    """Name of a profiling tool among the parents of this process; "": none."""
    pid = "self"
    for _ in range(32):
        status = _read(root / "proc" / pid / "status")
        name = re.search(r"^Name:\s*(.*)$", status, re.MULTILINE)
        parent = re.search(r"^PPid:\s*(\d+)$", status, re.MULTILINE)
        if name and name.group(1) in _TOOLS:
            return name.group(1)
        if not parent or parent.group(1) == "0":
            return ""
        pid = parent.group(1)
    return ""
