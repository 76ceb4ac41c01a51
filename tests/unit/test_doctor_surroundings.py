"""What the doctor reads of the machine, from files of known content."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuptiprof.doctor import surroundings as s


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/self").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\nGCC version:  gcc 12.2.0",
            "535.104.05",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\nGCC version: 12",
            "580.65.06",
        ),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  570.86.15  Release Build", "570.86.15"),
        ("", ""),
    ],
)
def test_kernel_module(root: Path, text: str, version: str) -> None:
    (root / "proc/driver/nvidia/version").write_text(text)
    assert s.kernel_module_version(root) == version


@pytest.mark.parametrize(
    ("text", "answer"), [("RmProfilingAdminOnly: 1\n", True), ("X: 2\nRmProfilingAdminOnly: 0\n", False), ("", None)]
)
def test_admin_only(root: Path, text: str, answer: bool | None) -> None:
    (root / "proc/driver/nvidia/params").write_text(text)
    assert s.admin_only(root) is answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("CapEff:\t000001ffffffffff\n", True),
        ("CapPrm:\t0000000000200000\nCapEff:\t00000000a80425fb\n", False),
        ("", None),
    ],
)
def test_capabilities(root: Path, text: str, answer: bool | None) -> None:
    (root / "proc/self/status").write_text(text)
    assert s.has_sys_admin(root) is answer


def test_nothing_there(tmp_path: Path) -> None:
    assert s.kernel_module_version(tmp_path) == ""
    assert s.admin_only(tmp_path) is None and s.has_sys_admin(tmp_path) is None
    assert not s.is_wsl(tmp_path)
    assert s.other_tools({}, tmp_path) == []


def test_wsl(root: Path) -> None:
    (root / "proc/version").write_text("Linux version 5.15.90.1-microsoft-standard-WSL2")
    assert s.is_wsl(root)


@pytest.mark.parametrize(
    "name", ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID", "COMPUTE_PROFILE"]
)
def test_variables_of_other_tools(root: Path, name: str) -> None:
    (finding,) = s.other_tools({name: "/opt/tool.so", "UNRELATED": "1"}, root)
    assert finding.level == "warning" and name in finding.what and "unset" in finding.hint
    assert s.other_tools({name: ""}, root) == []


def test_preload(root: Path) -> None:
    (finding,) = s.other_tools({"LD_PRELOAD": "/opt/nvidia/nsight-compute/libX.so"}, root)
    assert "LD_PRELOAD" in finding.what
    assert s.other_tools({"LD_PRELOAD": "/usr/lib/libjemalloc.so"}, root) == []


def test_a_tool_above(root: Path) -> None:
    for pid, name, parent in (("self", "python3", 50), ("50", "bash", 40), ("40", "nsys", 1), ("1", "init", 0)):
        (root / "proc" / pid).mkdir(exist_ok=True)
        (root / "proc" / pid / "status").write_text(f"Name:\t{name}\nUmask:\t0022\nPPid:\t{parent}\n")
    (finding,) = s.other_tools({}, root)
    assert finding.what == "this runs under nsys"
    (root / "proc/40/status").write_text("Name:\tsshd\nPPid:\t1\n")
    assert s.other_tools({}, root) == []


def test_parents_in_a_circle(root: Path) -> None:
    (root / "proc/7").mkdir()
    for pid in ("self", "7"):
        (root / "proc" / pid / "status").write_text("Name:\tx\nPPid:\t7\n")
    assert s.other_tools({}, root) == []


def test_loaded_libraries(root: Path) -> None:
    line = "7f0000000000-7f0000001000 r-xp 00000000 08:01 123   {}\n"
    maps = [
        "/a/lib/libcupti.so.13",
        "/a/lib/libcupti.so.13",
        "/opt/nsys/libToolsInjection64.so",
        "/usr/lib/libc.so.6",
        "",
    ]
    (root / "proc/self/maps").write_text("".join(line.format(m) for m in maps))
    (finding,) = s.other_tools({}, root)
    assert "libToolsInjection64.so" in finding.what
    maps = ["/a/lib/libcupti.so.13", "/b/my lib/libcupti.so.2025.3.1"]
    (root / "proc/self/maps").write_text("".join(line.format(m) for m in maps))
    (finding,) = s.other_tools({}, root)
    assert (
        finding.what
        == "2 copies of libcupti are loaded in this process: /a/lib/libcupti.so.13, /b/my lib/libcupti.so.2025.3.1"
    )


def test_nvtx_that_goes_to_us_is_no_other_tool(tmp_path: Path) -> None:
    (finding,) = s.other_tools({"NVTX_INJECTION64_PATH": "/x/libcuptiprof_nvtx.so"}, tmp_path)
    assert finding.level == "note" and "/x/libcuptiprof_nvtx.so" in finding.what
    (finding,) = s.other_tools({"NVTX_INJECTION64_PATH": "/x/libcupti.so.13"}, tmp_path)
    assert finding.level == "warning" and "/x/libcupti.so.13" in finding.what
