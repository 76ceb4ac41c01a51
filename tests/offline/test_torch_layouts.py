"""What we declare of PyTorch, against the headers and symbols of its releases (tests/data/torch-layouts), none of which is loaded."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
RELEASES: dict[str, dict[str, Any]] = json.loads(
    (ROOT / "tests" / "data" / "torch-layouts" / "layouts.json").read_text()
)
OF_TORCH = re.compile(r"_ZNK?(?:2at|3c10|5torch)\w+")


def looked_up() -> set[str]:
    """Mangled names of torch's functions in our sources; long ones are written in several parts."""
    found: set[str] = set()
    for source in (ROOT / "csrc" / "collect").rglob("*.cpp"):
        found |= set(OF_TORCH.findall(re.sub(r'"\s*"', "", source.read_text())))
    return found


def test_releases() -> None:
    assert {"2.4.1", "2.7.1", "2.15.0"} <= set(RELEASES)


@pytest.mark.parametrize("release", RELEASES)
def test_what_is_looked_up_is_there(release: str) -> None:
    names = looked_up()
    assert "_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE" in names
    assert names <= set(RELEASES[release]["symbols"])


@pytest.mark.parametrize("release", RELEASES)
def test_a_kind_of_debug_information_is_a_byte_or_an_address(release: str) -> None:
    """Both are told from torch's own by the address of ours: as a byte it is above them (backward_caller.cpp)."""
    layout = RELEASES[release]
    assert layout["debug_info_kind.size"] in (1, 8) and layout["debug_info.size"] == 8
    source = (ROOT / "csrc" / "collect" / "regions" / "backward_caller.cpp").read_text()
    assert "struct alignas(256) Kind" in source and "char before[0xc0]" in source
