"""Fixtures: NVIDIA's own libraries, without a driver. (No second conftest.py: tests import the first by that name.)"""

from __future__ import annotations

import platform
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from cuptiprof.device.locate import _nvidia_packages

FakeDriver = Callable[[int], Path]


@pytest.fixture(scope="session")
def cupti_13_0() -> str:
    """libcupti of the installed wheel nvidia-cuda-cupti==13.0.*."""
    files = [root / "cu13/lib/libcupti.so.13" for root in _nvidia_packages()]
    found = [str(f) for f in files if f.is_file()]
    assert found, "install the test requirements: pip install -c constraints.txt '.[test]'"
    return found[0]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Path of libcupti out of a wheel from PyPI, by release ("13.2"), unpacked where nothing finds it by itself."""
    unpacked: dict[str, str] = {}

    def get(release: str) -> str:
        if release not in unpacked:
            folder = tmp_path_factory.mktemp(f"cupti-{release}")
            name = "nvidia-cuda-cupti" + ("-cu12" if release.startswith("12") else "")
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check"]
            subprocess.run([*command, "--only-binary=:all:", "-d", folder, f"{name}=={release}.*"], check=True)
            with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
                wanted = [n for n in archive.namelist() if "libcupti.so" in n or n.endswith("/RECORD")]
                archive.extractall(folder, wanted)
            unpacked[release] = str(folder / next(n for n in wanted if "libcupti.so" in n))
        return unpacked[release]

    return get


@pytest.fixture(scope="session")
def compile_library(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """Compiles C text into a shared library of the given file name, in a folder of its own."""

    def build(name: str, text: str) -> Path:
        folder = tmp_path_factory.mktemp("library")
        (folder / "source.c").write_text(text)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / name, folder / "source.c"], check=True)
        return folder / name

    return build


@pytest.fixture
def no_driver() -> None:
    """These tests are about machines without a driver."""
    from cuptiprof.device.locate import driver_present

    assert platform.system() == "Linux"
    if driver_present():
        pytest.skip("this machine has an NVIDIA driver; tests/gpu is for it")
