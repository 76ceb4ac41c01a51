"""The order in which libcupti is looked for."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from cuptiprof.device import locate
from cuptiprof.device.locate import Found, candidates, choose, file_version, find_cupti, major_version
from cuptiprof.errors import DeviceError


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """One file in each place, and no driver."""
    files = {
        "wheel 13": tmp_path / "site/nvidia/cu13/lib/libcupti.so.13",
        "wheel 12": tmp_path / "site/nvidia/cuda_cupti/lib/libcupti.so.12",
        "conda": tmp_path / "conda/lib/libcupti.so.13",
        "home": tmp_path / "cuda-12.8/extras/CUPTI/lib64/libcupti.so.12",
        "path": tmp_path / "ld/libcupti.so.12",
    }
    for file in files.values():
        file.parent.mkdir(parents=True)
        file.write_bytes(b"text")
    monkeypatch.delenv(locate.VARIABLE, raising=False)
    monkeypatch.setattr(locate, "_nvidia_packages", lambda: [tmp_path / "site/nvidia"])
    monkeypatch.setattr(locate._core, "loaded_library", lambda soname: "")
    monkeypatch.setattr(locate, "driver_version", lambda: 0)
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "conda"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda-12.8"))
    monkeypatch.setenv("LD_LIBRARY_PATH", f":{tmp_path}/nowhere:{tmp_path}/ld")
    return files


def test_order(places: dict[str, Path]) -> None:
    found = [f.path for f in candidates()]
    ours = [f for f in found if f in {str(p) for p in places.values()}]
    assert ours == [str(places[p]) for p in ("wheel 13", "wheel 12", "conda", "home", "path")]
    assert choose().how == "PyPI wheel nvidia-cuda-cupti"


def test_a_link_to_a_file_already_listed_is_no_second_candidate(places: dict[str, Path]) -> None:
    places["conda"].unlink()
    places["conda"].symlink_to(places["wheel 13"])
    assert str(places["conda"]) not in [f.path for f in candidates()]


def test_the_variable_is_final(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(locate.VARIABLE, str(places["path"]))
    assert [f.path for f in candidates()] == [str(places["path"])]
    assert choose().how == "named by CUPTIPROF_CUPTI"
    assert choose(str(places["home"])).path == str(places["home"])  # an argument outranks it


def test_what_is_loaded_already_comes_first(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    there = str(places["path"])
    monkeypatch.setattr(locate._core, "loaded_library", lambda soname: there if soname.endswith("12") else "")
    monkeypatch.setattr(locate, "driver_version", lambda: 13000)
    assert choose() == Found(there, "already loaded in this process")


@pytest.mark.parametrize(
    ("driver", "expected"), [(0, "wheel 13"), (13000, "wheel 13"), (12080, "wheel 12"), (11080, "wheel 13")]
)
def test_not_newer_than_the_driver(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch, driver: int, expected: str
) -> None:
    monkeypatch.setattr(locate, "driver_version", lambda: driver)
    assert choose().path == str(places[expected])


def test_nothing_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "_places", lambda: iter(()))
    monkeypatch.delenv(locate.VARIABLE, raising=False)
    with pytest.raises(DeviceError, match="libcupti was not found") as e:
        find_cupti()
    assert "pip install nvidia-cuda-cupti" in e.value.hint
    assert 'device="sim"' in e.value.hint


@pytest.mark.parametrize("make", [None, b"text", b""])
def test_a_bad_file_is_refused_before_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: bytes | None
) -> None:
    file = tmp_path / "libcupti.so.13"
    if make is not None:
        file.write_bytes(make)
    monkeypatch.setenv(locate.VARIABLE, str(file))
    with pytest.raises(DeviceError, match=str(file)) as e:
        find_cupti()
    assert "CUPTIPROF_CUPTI" in e.value.hint


def test_version_from_wheel_metadata(tmp_path: Path) -> None:
    lib = tmp_path / "nvidia/cu13/lib/libcupti.so.13"
    lib.parent.mkdir(parents=True)
    lib.write_bytes(b"")
    for name, entry in (
        ("cupti-12.6.80", "elsewhere/libcupti.so.13"),
        ("cupti-13.2.75", "nvidia/cu13/lib/libcupti.so.13"),
    ):
        info = tmp_path / f"nvidia_cuda_{name}.dist-info"
        info.mkdir()
        (info / "RECORD").write_text(f"{entry},sha256=abc,1\n")
    assert file_version(lib) == ("13.2", "wheel metadata")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("lib/libcupti.so.2025.3.1", ("13.0", "file name")),
        ("lib/libcupti.so.2024.3.2", ("12.6", "file name")),
        ("cuda-12.8/lib64/libcupti.so.12", ("12.8", "toolkit folder")),
        ("lib/libcupti.so.13", ("", "")),
    ],
)
def test_version_from_the_path(tmp_path: Path, path: str, expected: tuple[str, str]) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_bytes(b"text")
    assert file_version(file) == expected
    link = tmp_path / "libcupti.so.13"
    if not link.exists():
        link.symlink_to(file)
        assert file_version(link) == expected


def test_major_version() -> None:
    assert major_version(Found("/x/libcupti.so.12", "", "12.6")) == 12
    assert major_version(Found("/x/libcupti.so.12", "")) == 12
    assert major_version(Found("/x/other.so", "")) == 0


def test_looking_loads_nothing() -> None:
    """A search must not leave a libcupti in the process that was only looked at."""
    code = (
        "from cuptiprof.device.locate import candidates, find_cupti\n"
        "assert list(candidates()); find_cupti()\n"
        "print([l for l in open('/proc/self/maps') if 'libcupti.so' in l])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def shared_object(needed: str, rpath: str, tag: int) -> bytes:
    """The least that the reader takes for a shared object of this machine."""
    texts = b"\0" + needed.encode() + b"\0" + rpath.encode() + b"\0"
    dynamic_at, entries = 64 + 2 * 56, 5
    strings_at = dynamic_at + entries * 16
    size = strings_at + len(texts)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, size, size, 1)
    dynamic = struct.pack("<IIQQQQQQ", 2, 4, dynamic_at, dynamic_at, 0, entries * 16, entries * 16, 8)
    tags = ((1, 1), (tag, 2 + len(needed)), (5, strings_at), (10, len(texts)), (0, 0))
    return header + load + dynamic + b"".join(struct.pack("<qQ", *t) for t in tags) + texts


@pytest.mark.parametrize("tag", [15, 29], ids=["RPATH", "RUNPATH"])
def test_what_pytorch_will_load_comes_before_other_wheels(
    places: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tag: int
) -> None:
    """A second copy in the process would not see the first one's subscriber; torch is not imported for it."""
    package = tmp_path / "site/torch"
    (package / "lib").mkdir(parents=True)
    search = "$ORIGIN/../../nowhere:$ORIGIN/../../nvidia/cuda_cupti/lib"
    (package / "lib/libtorch_cpu.so").write_bytes(shared_object("libcupti.so.12", search, tag))
    monkeypatch.setattr(locate, "_package", lambda name: [package] if name == "torch" else [])
    monkeypatch.delenv("LD_LIBRARY_PATH")
    best = choose()
    assert Path(best.path).resolve() == places["wheel 12"].resolve()
    assert best.how == "the one that PyTorch loads"
    # LD_LIBRARY_PATH comes before RUNPATH and after RPATH, as for the dynamic linker.
    monkeypatch.setenv("LD_LIBRARY_PATH", str(places["path"].parent))
    expected = places["wheel 12" if tag == 15 else "path"]
    assert Path(choose().path).resolve() == expected.resolve()


@pytest.mark.parametrize("content", [b"", b"text", b"\x7fELF\x02\x01\x01" + bytes(300)])
def test_a_torch_that_cannot_be_read_is_passed_over(
    places: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    package = tmp_path / "site/torch"
    (package / "lib").mkdir(parents=True)
    (package / "lib/libtorch_cpu.so").write_bytes(content)
    monkeypatch.setattr(locate, "_package", lambda name: [package] if name == "torch" else [])
    assert choose().how == "PyPI wheel nvidia-cuda-cupti"
