"""The real libcupti 13.0 through our loader: everything that needs no GPU. And the releases that need a driver."""

from __future__ import annotations

import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cuptiprof import _core
from cuptiprof.device.locate import file_version, needs_driver
from cuptiprof.errors import CuptiError, DeviceError
from cuptiprof.sim.sim_device import library_path

pytest_plugins = ["nvidia_libraries"]

KERNEL, MEMCPY, MEMSET, API, MARKER = 10, 1, 2, 5, 12
# Bytes from one record to the next as libcupti 13.0 writes them.
STRIDES = {KERNEL: 216, MEMCPY: 96, MEMSET: 88, API: 40, MARKER: 56}
INVALID_KIND = 21
UNNAMED = {36, 37}  # in cupti_result.h, but the library has no text for them


@pytest.fixture(scope="module")
def library(cupti_13_0: str) -> _core.CuptiLibrary:
    return _core.load_cupti(cupti_13_0, "test")


def records(kinds: list[int]) -> tuple[bytearray, list[tuple[int, int]]]:
    """A buffer of empty records, and where each begins."""
    buffer, expected = bytearray(), []
    for kind in kinds:
        expected.append((kind, len(buffer)))
        buffer += struct.pack("<I", kind) + bytes(STRIDES[kind] - 4)
    return buffer, expected


def test_what_it_says_of_itself(library: _core.CuptiLibrary, cupti_13_0: str) -> None:
    assert 130000 <= library.version < 130100
    assert library.cuda_version == "13.0"
    assert Path(library.path).samefile(cupti_13_0)
    assert library.found_by == "test"
    assert not library.simulated


def test_every_optional_feature_is_there(library: _core.CuptiLibrary) -> None:
    features = library.features()
    assert len(features) > 5
    assert {f["since"] for f in features if not f["works"]} == {"13.4"}  # the library is 13.0


def test_timestamp_is_the_time_of_day(library: _core.CuptiLibrary, no_driver: None) -> None:
    before = time.time_ns()
    stamps = [library.timestamp() for _ in range(100)]
    after = time.time_ns()
    assert stamps == sorted(stamps)
    assert before - 10_000_000 <= stamps[0] <= stamps[-1] <= after + 10_000_000


def test_our_table_of_results_is_nvidias(library: _core.CuptiLibrary) -> None:
    known = {code: library.result_string(code) for code in [*range(100), 999]}
    assert {code for code, name in known.items() if name} == {*range(47), 999} - UNNAMED
    for code, name in known.items():
        if code not in UNNAMED:
            assert _core.error_text(code)[0] == (name or "unknown CUPTI result"), code


@pytest.mark.parametrize("code", [1, 15, 27, 33, 35, 39, 40, 41, 43, 999])
def test_results_that_users_meet_say_what_to_do(code: int) -> None:
    _, what, hint = _core.error_text(code)
    assert what and hint


def test_the_hint_for_privileges_names_both_ways() -> None:
    hint = _core.error_text(35)[2]
    assert "NVreg_RestrictProfilingToAdminUsers=0" in hint and "CAP_SYS_ADMIN" in hint


@pytest.mark.parametrize(
    ("domain", "cbid", "name", "base"),
    [
        (1, 307, "cuLaunchKernel", "cuLaunchKernel"),
        (1, 652, "cuLaunchKernelEx", "cuLaunchKernelEx"),
        (1, 277, "cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync"),
        (2, 211, "cudaLaunchKernel_v7000", "cudaLaunchKernel"),
        (2, 214, "cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel"),
        (2, 430, "cudaLaunchKernelExC_v11060", "cudaLaunchKernelExC"),
        (2, 41, "cudaMemcpyAsync_v3020", "cudaMemcpyAsync"),
        (2, 51, "cudaMemsetAsync_v3020", "cudaMemsetAsync"),
    ],
)
def test_callback_names(library: _core.CuptiLibrary, domain: int, cbid: int, name: str, base: str) -> None:
    assert library.callback_name(domain, cbid) == name
    assert _core.api_base_name(name) == base


def test_unknown_callbacks_have_no_name(library: _core.CuptiLibrary) -> None:
    assert library.callback_name(1, 1_000_000) == ""


def test_records_are_walked_by_the_librarys_own_strides(library: _core.CuptiLibrary) -> None:
    buffer, expected = records([KERNEL, API, KERNEL, MEMCPY, MEMSET, MARKER, API, KERNEL] * 50)
    assert library.record_kinds(buffer, len(buffer)) == expected


@pytest.mark.parametrize("missing", [1, 39, 200])
def test_a_record_cut_off_at_the_end_is_not_given_out(library: _core.CuptiLibrary, missing: int) -> None:
    buffer, expected = records([API, MEMCPY, KERNEL])
    assert library.record_kinds(buffer, len(buffer) - missing) == expected[:2]


def test_an_empty_buffer_has_no_records(library: _core.CuptiLibrary) -> None:
    assert library.record_kinds(bytearray(64), 0) == []


def test_a_buffer_of_another_release_is_an_error(library: _core.CuptiLibrary) -> None:
    """Kernel records of 12.6 are 208 bytes long: stepping by 216 ends between records."""
    buffer = (struct.pack("<I", KERNEL) + bytes(204)) * 8
    with pytest.raises(CuptiError) as e:
        library.record_kinds(bytearray(buffer), len(buffer))
    assert e.value.code == INVALID_KIND
    assert e.value.call == "cuptiActivityGetNextRecord"


def test_valid_beyond_the_buffer_is_refused(library: _core.CuptiLibrary) -> None:
    with pytest.raises(ValueError, match="larger than the buffer"):
        library.record_kinds(bytearray(64), 65)


def test_no_record_was_dropped(library: _core.CuptiLibrary) -> None:
    assert library.dropped_records() == 0


def test_subscribing_without_a_driver_says_so(library: _core.CuptiLibrary, no_driver: None) -> None:
    with pytest.raises(CuptiError) as e:
        library.try_subscribe()
    assert (e.value.code, e.value.name, e.value.call) == (999, "CUPTI_ERROR_UNKNOWN", "cuptiSubscribe")
    assert "no NVIDIA driver" in e.value.hint and 'device="sim"' in e.value.hint


def test_it_is_found_where_it_is_loaded(library: _core.CuptiLibrary) -> None:
    assert _core.loaded_library("libcupti.so.13") == library.path
    assert _core.loaded_library("libcupti.so.99") == ""


@pytest.mark.parametrize("release", ["13.2", "13.5"])
def test_releases_that_need_a_driver_are_not_called(wheel: Callable[[str], str], release: str, no_driver: None) -> None:
    """13.2 recurses to death in its first call; in a process of its own, so that a mistake of ours fails one test only."""
    path = wheel(release)
    assert file_version(path) == (release, "wheel metadata")
    assert needs_driver(path)
    code = (
        "import sys; from cuptiprof import _core; from cuptiprof.errors import DeviceError\n"
        "try: _core.load_cupti(sys.argv[1], 'test')\n"
        "except DeviceError as e: print(e)"
    )
    out = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert "no NVIDIA driver" in out.stdout and "CUDA 13.2 or newer" in out.stdout and 'device="sim"' in out.stdout


def test_12_6_works_with_less(wheel: Callable[[str], str], no_driver: None) -> None:
    path = wheel("12.6")
    assert not needs_driver(path)
    old = _core.load_cupti(path, "test")
    assert (old.version, old.cuda_version) == (24, "12.6")
    missing = {f["name"]: f for f in old.features() if not f["works"]}
    assert missing["name of the tool that holds CUPTI"]["since"] == "13.0"
    assert missing["device-launched kernels"]["without"]
    buffer = (struct.pack("<I", KERNEL) + bytes(204)) * 8  # its own stride
    assert len(old.record_kinds(bytearray(buffer), len(buffer))) == 8


def test_a_library_of_another_kind(compile_library: Callable[[str, str], Path], cupti_13_0: str) -> None:
    other = compile_library("libcupti.so.13", "int cuptiGetVersion(unsigned* v) { *v = 1; return 0; }")
    with pytest.raises(DeviceError, match="lacks cuptiGetTimestamp") as e:
        _core.load_cupti(str(other), "test")
    assert "CUPTIPROF_CUPTI" in e.value.hint
    with pytest.raises(DeviceError, match="cannot load /no/such/file"):
        _core.load_cupti("/no/such/file", "test")


def test_the_simulated_device_is_never_taken_for_the_real_one(cupti_13_0: str) -> None:
    with pytest.raises(DeviceError, match="is the simulated device"):
        _core.load_cupti(str(library_path()), "test")
    with pytest.raises(DeviceError, match="is not the simulated device"):
        _core.load_cupti(cupti_13_0, "test", True)
