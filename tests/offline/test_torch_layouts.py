"""What we declare of PyTorch, against the headers and symbols of its releases (tests/data/torch-layouts), none of which is loaded."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cuptiprof.session.torch_operators import layout_of

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
    assert {"2.4.1", "2.7.1", "2.13.0", "2.15.0"} <= set(RELEASES)


@pytest.mark.parametrize("release", RELEASES)
def test_what_is_looked_up_is_there(release: str) -> None:
    names = looked_up()
    assert "_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE" in names and {MADE, KIND} <= names
    assert names - {MADE, KIND} <= set(RELEASES[release]["symbols"])


MADE = (
    "_ZN5torch19ParamCommsDebugInfoC1ESt5tupleIJNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES7_EEiOS7_llN3c10"
    "10ScalarTypeESt6vectorIlSaIlEESE_iii"
)
KIND = "_ZN3c1013DebugInfoKind16PARAM_COMMS_INFOE"


@pytest.mark.parametrize("release", RELEASES)
def test_what_backends_say_of_collectives(release: str) -> None:
    """As in 2.13, where a session's trial finds it as declared (tests/sim/test_collective_records.py), or not to be called."""
    layout, read = RELEASES[release], RELEASES["2.13.0"]
    symbols = set(layout["symbols"])
    assert (KIND in symbols) == (layout["debug_info_kind.size"] == 8)
    assert ({MADE, f"{MADE}b"} & symbols != set()) == (not layout["old_strings"])
    source = (ROOT / "csrc" / "collect" / "torch" / "collective_facts.cpp").read_text()
    assert layout["comms.size"] <= int(re.findall(r"kRoom = (\d+)", source)[0])
    if not layout["old_strings"]:
        later = {"comms.size", "comms.is_async", "comms.sequence"}
        of_all = {field for field in read if field.startswith("comms.")} - later
        assert {f: layout[f] for f in of_all} == {f: read[f] for f in of_all}
        assert all(layout.get(f, read[f]) == read[f] for f in ("comms.is_async", "comms.sequence"))
        assert (f"{MADE}b" in symbols) == ("comms.is_async" in layout)


@pytest.mark.parametrize("release", RELEASES)
def test_a_kind_of_debug_information_is_a_byte_or_an_address(release: str) -> None:
    """Both are told from torch's own by the address of ours: as a byte it is above them (backward_caller.cpp)."""
    layout = RELEASES[release]
    assert layout["debug_info_kind.size"] in (1, 8) and layout["debug_info.size"] == 8
    source = (ROOT / "csrc" / "collect" / "regions" / "backward_caller.cpp").read_text()
    assert "struct alignas(256) Kind" in source and "char before[0xc0]" in source


@pytest.mark.parametrize("release", RELEASES)
def test_a_trial_finds_the_fields_of_a_release(release: str) -> None:
    """In as many bytes as are kept, and none beyond what a RecordFunction has."""
    layout = RELEASES[release]
    header = (ROOT / "csrc" / "collect" / "torch" / "operator_trial.h").read_text()
    kept = int(re.findall(r"kTrialBytes = (\d+)", header)[0])
    assert kept <= layout["call.size"]

    def said(scope: int, sequence: int, forward: int) -> bytes:
        bytes_ = bytearray(layout["call.size"])
        for field, value in (("thread", 7), ("scope", scope), ("sequence", sequence), ("forward_thread", forward)):
            at, size = layout[f"call.{field}"], 1 if field == "scope" else 8
            bytes_[at : at + size] = value.to_bytes(size, "little", signed=True)
        return bytes(bytes_[:kept])

    calls = [(b"cuptiprof: trial", said(7, -1, 0)), (b"aten::mul", said(0, 41, 0)), (b"aten::exp", said(0, 42, 0))]
    calls.append((b"MulBackward0", said(1, 41, 7)))
    found = layout_of(7, [(name, bytes_, b"") for name, bytes_ in calls], 41, 42)
    assert vars(found) == {name: layout[f"call.{name}"] for name in ("thread", "scope", "sequence", "forward_thread")}
