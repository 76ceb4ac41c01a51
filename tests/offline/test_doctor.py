"""The doctor on whatever may be installed: it always answers, and the answer is the right one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cuptiprof.device.locate import VARIABLE
from cuptiprof.doctor import Diagnosis, Finding, diagnose
from cuptiprof.doctor.printed import diagnosis_text

pytest_plugins = ["nvidia_libraries"]

Compile = Callable[[str, str], Path]

# A driver as far as the doctor looks before CUPTI: one GPU, and whatever cuInit is to return.
FAKE_DRIVER = """
#include <string.h>
int cuInit(unsigned f) { return %d; }
int cuDriverGetVersion(int *v) { *v = %d; return %d; }
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
int cuDeviceGet(int *d, int i) { *d = i; return 0; }
int cuDeviceGetName(char *b, int n, int d) { strcpy(b, "Fake \\x1b[31m GPU"); return 0; }
int cuDeviceTotalMem_v2(unsigned long *b, int d) { *b = 16UL << 30; return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) { *v = a == 75 ? 9 : a == 16 ? 132 : 0; return 0; }
int cuDeviceGetUuid_v2(char *u, int d) { memset(u, 7, 16); return 0; }
"""


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, no_driver: None) -> None:
    for name in (VARIABLE, "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def fake_driver(compile_library: Compile, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts a libcuda.so.1 in the way of the doctor's child."""

    def install(init: int = 0, version: int = 13000, version_result: int = 0) -> None:
        library = compile_library("libcuda.so.1", FAKE_DRIVER % (init, version, version_result))
        monkeypatch.setenv("LD_LIBRARY_PATH", str(library.parent))

    return install


def problems(report: Diagnosis) -> list[Finding]:
    """What is wrong; every problem must say what to do."""
    found = [f for f in report.findings if f.level == "problem"]
    assert not report.can_trace
    assert found and all(f.hint for f in found)
    tracing = report.features[0]
    assert (tracing.works, tracing.why, tracing.hint) == (False, found[0].what, found[0].hint)
    assert json.loads(json.dumps(report.data()))["can_trace"] is False
    text = diagnosis_text(report)
    assert text.endswith("Tracing does not work on this machine.")
    assert all(f.what in text for f in found)
    return found


def test_no_driver(cupti_13_0: str) -> None:
    report = diagnose()
    (problem,) = problems(report)
    assert problem.what.startswith("no NVIDIA driver (libcuda.so.1")
    assert "--gpus all" in problem.hint and "--device sim" in problem.hint
    assert report.libcupti["path"] == cupti_13_0
    assert report.libcupti["how"] == "PyPI wheel nvidia-cuda-cupti" or "already loaded" in report.libcupti["how"]
    assert 130000 <= report.libcupti["version"] < 130100
    assert report.libcupti["cuda"] == "13.0"
    assert report.nvperf["host"] == str(Path(cupti_13_0).with_name("libnvperf_host.so"))
    # The library has them, and nothing was recorded to prove it; but for what CUDA 13.4 brought.
    assert {f.works for f in report.features[1:] if "13.4" not in f.hint} == {None}
    assert [f.works for f in report.features if "13.4" in f.hint] == [False]
    assert report.driver["version"] == "" and report.gpus == []


@pytest.mark.parametrize("release", ["13.2", "13.5"])
def test_releases_that_need_a_driver(
    wheel: Callable[[str], str], release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, wheel(release))
    report = diagnose()
    (problem,) = problems(report)
    assert "no NVIDIA driver" in problem.what
    assert report.libcupti["cuda"] == release
    assert report.libcupti["version_from"] == "wheel metadata"
    assert report.libcupti["version"] == 0  # it was not asked
    note = "libcupti of CUDA 13.2 and newer does nothing without a driver: it was not called"
    assert note in [f.what for f in report.findings]


def test_12_6_lists_what_it_lacks(wheel: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, wheel("12.6"))
    report = diagnose()
    problems(report)
    lacks = {f.name: f for f in report.features[1:] if f.works is False}
    assert lacks["device-launched kernels"].hint == "use libcupti of CUDA 13.0 or newer"
    assert "CUpti_ActivityKernel10" in lacks["device-launched kernels"].why


def test_a_crash_inside_libcupti_is_a_finding(
    wheel: Callable[[str], str], fake_driver: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real 13.2 with a driver that it does not get on with: endless recursion."""
    fake_driver()
    monkeypatch.setenv(VARIABLE, wheel("13.2"))
    report = diagnose()
    (problem,) = problems(report)
    assert problem.what == "the probe was killed by SIGSEGV while loading libcupti"
    assert "another nvidia-cuda-cupti" in problem.hint
    assert report.driver["version"] == "13.0"
    assert report.gpus[0]["compute_capability"] == "9.0" and report.gpus[0]["multiprocessors"] == 132


def test_names_from_a_driver_cannot_reach_the_terminal(fake_driver: Callable[..., None]) -> None:
    fake_driver()
    text = diagnosis_text(diagnose())
    assert "Fake \\x1b[31m GPU" in text and "\x1b" not in text


def test_13_0_on_a_driver_that_it_does_not_get_on_with(fake_driver: Callable[..., None]) -> None:
    fake_driver()
    (problem,) = problems(diagnose())
    assert problem.what.startswith("cuptiSubscribe returned 999")
    assert "cuptiprof doctor" not in problem.hint  # no circle


@pytest.mark.parametrize(
    ("code", "said", "hint"),
    [
        (100, "no GPU is visible", "CUDA_VISIBLE_DEVICES"),
        (802, "not ready", "fabricmanager"),
        (803, "different versions", "reload"),
        (12345, "cuInit returned 12345", "nvidia-smi"),
    ],
)
def test_what_cuinit_says(fake_driver: Callable[..., None], code: int, said: str, hint: str) -> None:
    fake_driver(init=code)
    found = problems(diagnose())
    assert said in found[0].what and hint in found[0].hint


def test_the_link_stub_is_no_driver(
    fake_driver: Callable[..., None], wheel: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_driver(version_result=34)
    monkeypatch.setenv(VARIABLE, wheel("13.2"))  # would crash if it were called
    found = problems(diagnose())
    assert "link stub" in found[0].what and "LD_LIBRARY_PATH" in found[0].hint


def test_libcupti_newer_than_the_driver(fake_driver: Callable[..., None]) -> None:
    fake_driver(version=12040)
    report = diagnose()
    warning = next(f for f in report.findings if "libcupti is of CUDA 13.0" in f.what)
    assert "up to 12.4" in warning.what and "nvidia-cuda-cupti-cu12" in warning.hint


def test_no_libcupti_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the package where no NVIDIA wheel, toolkit or system library is to be found."""
    import cuptiprof.doctor.child as child
    import cuptiprof.doctor.examine as examine

    monkeypatch.setattr(examine, "SONAMES", ())  # other tests of this process may have loaded one
    code = child._CODE.replace(
        "from cuptiprof.doctor.trial",
        "import cuptiprof.device.locate as l; l._places = lambda: iter(()); from cuptiprof.doctor.trial",
    )
    monkeypatch.setattr(child, "_CODE", code)
    found = problems(diagnose())
    assert found[1].what == "libcupti was not found"
    assert "pip install nvidia-cuda-cupti" in found[1].hint


def test_the_named_file_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "libcupti.so.13"))
    assert "No such file" in problems(diagnose())[1].what


def test_a_text_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "libcupti.so.13").write_text("/* GNU ld script */\n")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "libcupti.so.13"))
    assert "not an ELF file" in problems(diagnose())[1].what


def test_a_folder_and_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        monkeypatch.setenv(VARIABLE, str(path))
        assert "not a file" in problems(diagnose(timeout_s=20))[1].what


def test_a_download_cut_short(cupti_13_0: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading it would end in SIGBUS."""
    data = Path(cupti_13_0).read_bytes()
    (tmp_path / "libcupti.so.13").write_bytes(data[: len(data) * 2 // 3])
    monkeypatch.setenv(VARIABLE, str(tmp_path / "libcupti.so.13"))
    assert "truncated" in problems(diagnose())[1].what


def test_another_processor(cupti_13_0: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytearray(Path(cupti_13_0).read_bytes())
    data[18:20] = (21).to_bytes(2, "little")
    (tmp_path / "libcupti.so.13").write_bytes(data)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "libcupti.so.13"))
    assert "is for ppc64le" in problems(diagnose())[1].what


def test_a_damaged_library_that_kills_its_loader(compile_library: Compile, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "#include <stdlib.h>\n__attribute__((constructor)) static void f(void) { abort(); } int cuptiGetVersion(void) { return 0; }"
    monkeypatch.setenv(VARIABLE, str(compile_library("libcupti.so.13", text)))
    assert "was killed by SIGABRT while loading libcupti" in problems(diagnose())[1].what


def test_a_library_that_exits(compile_library: Compile, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "#include <stdlib.h>\n__attribute__((constructor)) static void f(void) { _Exit(0); } int cuptiGetVersion(void) { return 0; }"
    monkeypatch.setenv(VARIABLE, str(compile_library("libcupti.so.13", text)))
    assert "ended with status 0 while loading libcupti" in problems(diagnose())[1].what


def test_a_library_that_never_answers(compile_library: Compile, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "#include <unistd.h>\n__attribute__((constructor)) static void f(void) { for (;;) pause(); } int cuptiGetVersion(void) { return 0; }"
    monkeypatch.setenv(VARIABLE, str(compile_library("libcupti.so.13", text)))
    assert "did not answer for 3 s while loading libcupti" in problems(diagnose(timeout_s=3))[1].what


def test_a_name_that_is_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path) + "/\udcff\n\x1b[2J.so")
    text = diagnosis_text(diagnose())
    text.encode("utf-8")
    assert "\x1b" not in text and "\\udcff" in text


def test_without_a_python_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python embedded in another program has no sys.executable."""
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    report = diagnose()
    assert "the probe could not be started" in problems(report)[0].what
    assert report.libcupti["path"] == ""


def test_what_is_loaded_here_is_what_is_examined(wheel: Callable[[str], str]) -> None:
    """In a notebook the interesting libcupti is the one that torch has loaded."""
    code = (
        "import ctypes, sys; ctypes.CDLL(sys.argv[1])\n"
        "from cuptiprof.doctor import diagnose\n"
        "r = diagnose(); print(r.libcupti['path'], r.libcupti['how'], sep='\\n')"
    )
    path = wheel("12.6")
    out = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines() == [path, "already loaded in this process"]


def test_command_line() -> None:
    exe = [shutil.which("cuptiprof", path=str(Path(sys.executable).parent)) or "cuptiprof", "doctor"]
    plain = subprocess.run(exe, capture_output=True, text=True)
    assert plain.returncode == 1 and "no NVIDIA driver" in plain.stdout and plain.stderr == ""
    data = subprocess.run([*exe, "--json"], capture_output=True, text=True)
    assert data.returncode == 1 and json.loads(data.stdout)["can_trace"] is False
    sim = subprocess.run([*exe, "--device", "sim"], capture_output=True, text=True)
    assert sim.returncode == 0 and "simulated" in sim.stdout.splitlines()[0]
