"""The compiled probes without a GPU: every architecture is there, and the machine code holds what the arithmetic of
``cuptiprof verify`` counts on."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from functools import cache, lru_cache
from pathlib import Path

import pytest

from cuptiprof import _core
from cuptiprof.verify.control_flow import KERNEL_FRAME, LOOP_FRAME

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)
SHAPE = _core.PROBE_SHAPE
IMAGES = _core.probe_images()

pytestmark = pytest.mark.skipif(not IMAGES, reason="built without nvcc: there are no probes")

_MAGIC = 0xBA55ED50
_PTX, _ELF = 1, 2


def entries(image: bytes) -> list[tuple[int, int]]:
    """(kind, architecture) of what a fatbin holds. Its layout: a header of 16 bytes (magic, version, size of the header,
    size of the rest), then entries, each with a header (kind, -, its size, size of the payload, ..., architecture)."""
    magic, _, header, size = struct.unpack_from("<IHHQ", image, 0)
    assert magic == _MAGIC and header + size <= len(image)
    out, at = [], header
    while at < header + size:
        kind, _, entry, payload = struct.unpack_from("<HHIQ", image, at)
        out.append((kind, struct.unpack_from("<I", image, at + 28)[0]))
        at += entry + payload
    assert at == header + size
    return out


def tool_folders() -> list[str]:
    site = [Path(p) / "nvidia/cu13/bin" for p in sys.path if p.endswith("site-packages")]
    return [str(p) for p in (*site, Path("/usr/local/cuda/bin"))] + os.environ.get("PATH", "").split(os.pathsep)


@lru_cache(maxsize=1)
def disassembler() -> tuple[str, dict[str, str]] | None:
    path = os.pathsep.join(tool_folders())
    tool = shutil.which("cuobjdump", path=path)
    if tool is None or shutil.which("nvdisasm", path=path) is None:
        return None
    return tool, {**os.environ, "PATH": path}


@cache
def instructions(subject: str, architecture: int) -> dict[str, list[str]]:
    """Kernel -> its instructions without predicates, as text ("FFMA R3, R3, R4, R4"), up to the endless loop after EXIT."""
    found = disassembler()
    if found is None:
        pytest.skip("no cuobjdump and nvdisasm: pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm")
    tool, environment = found
    with tempfile.NamedTemporaryFile(suffix=".fatbin") as file:
        file.write(IMAGES[subject])
        file.flush()
        listing = subprocess.run(
            [tool, "-sass", "-arch", f"sm_{architecture}", file.name],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
    kernels: dict[str, list[str]] = {}
    name = ""
    for line in listing.splitlines():
        if match := re.search(r"Function : (\S+)", line):
            name = match[1]
            kernels[name] = []
        elif (match := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][^;]*?)\s*;", line)) and name:
            kernels[name].append(match[1])
    return kernels


def opcodes(subject: str, kernel: str, architecture: int) -> Counter[str]:
    return Counter(i.split()[0].split(".")[0] for i in instructions(subject, architecture)[kernel])


def test_all_sources_are_embedded() -> None:
    assert set(IMAGES) == {p.stem for p in (ROOT / "csrc/probes").glob("*.cu")}


@pytest.mark.parametrize("subject", sorted(IMAGES))
def test_every_architecture_is_there_and_newer_gpus_have_ptx(subject: str) -> None:
    held = entries(IMAGES[subject])
    assert {a for kind, a in held if kind == _ELF} == set(ARCHITECTURES)
    assert [a for kind, a in held if kind == _PTX] == [80]  # of Ampere: what came after runs it too


def test_they_keep_the_wheel_small() -> None:
    assert sum(map(len, IMAGES.values())) < 1 << 20


def test_every_kernel_that_verify_launches_exists() -> None:
    sources = "".join(p.read_text() for p in (ROOT / "csrc/probes").glob("*.cu"))
    names = set(re.findall(r"\b(probe_\w+)\s*\(", sources))
    names |= {f"probe_{n}" for n in re.findall(r"CHAIN_(?:WORD|LONG)\((\w+),", sources)}
    python = "".join(p.read_text() for p in (ROOT / "cuptiprof/verify").glob("*.py"))
    wanted = set(re.findall(r'"(probe_[a-z0-9_]+)"', python))
    wanted |= {f"probe_{o}_f{b}" for o in ("fma", "add", "mul") for b in (16, 32, 64)}
    wanted |= {f"probe_{k}_strided" for k in ("load", "store")} | {f"probe_shared_{k}" for k in ("load", "store")}
    assert len(wanted) > 20 and wanted <= names


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_chain_is_exactly_its_instructions(architecture: int) -> None:
    for letter, bits in (("F", 32), ("D", 64)):
        for operation in ("fma", "add", "mul"):
            found = opcodes("arithmetic", f"probe_{operation}_f{bits}", architecture)
            same_type = {o: n for o, n in found.items() if o in {f"{letter}{x}" for x in ("FMA", "ADD", "MUL")}}
            assert same_type == {f"{letter}{operation.upper()}": SHAPE["ops_per_iteration"]}, (operation, bits)
            assert not any(re.fullmatch(r"F(FMA|ADD|MUL)2", o) for o in found)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_half_chains_are_their_instructions_and_two_constants_at_most(architecture: int) -> None:
    for operation in ("fma", "add", "mul"):
        found = opcodes("arithmetic", f"probe_{operation}_f16", architecture)
        halves = sum(found[o] for o in ("HFMA2", "HADD2", "HMUL2"))
        assert 0 <= halves - SHAPE["ops_per_iteration"] <= 2, operation


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_one_matrix_product_is_one_instruction(architecture: int) -> None:
    assert opcodes("arithmetic", "probe_mma_f16", architecture)["HMMA"] == SHAPE["mma_per_iteration"]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_straight_kernels_differ_by_the_stated_instructions_alone(architecture: int) -> None:
    executed = {}
    for name in ("short", "long"):
        code = instructions("control_flow", architecture)[f"probe_straight_{name}"]
        end = max(i for i, text in enumerate(code) if text.startswith("EXIT"))
        executed[name] = Counter(t.split()[0].split(".")[0] for t in code[: end + 1])
        # Only the loop of the padding follows; nothing branches back.
        assert not any(t.startswith("BRA") for t in code[:end])
    more = SHAPE["straight_long"] - SHAPE["straight_short"]
    assert executed["long"] - executed["short"] == Counter({"FFMA": more})
    assert executed["short"] - executed["long"] == Counter()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_turn_of_the_branching_loop_costs_what_verify_allows(architecture: int) -> None:
    found = opcodes("control_flow", "probe_branch", architecture)
    assert found["FFMA"] == SHAPE["ops_per_iteration"]
    code = instructions("control_flow", architecture)["probe_branch"]
    first = next(i for i, t in enumerate(code) if t.startswith("FFMA"))
    last = max(i for i, t in enumerate(code) if t.startswith("FFMA"))
    back = next(i for i, t in enumerate(code[last:], last) if t.startswith("BRA"))
    assert any(t.startswith("BRA") for t in code[last:])  # it is a loop
    turn = back - first + 1
    assert SHAPE["ops_per_iteration"] < turn <= SHAPE["ops_per_iteration"] + LOOP_FRAME
    assert sum(t != "NOP" for t in code) - turn <= KERNEL_FRAME


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_memory_instructions_are_as_wide_and_as_many_as_stated(architecture: int) -> None:
    def memory(subject: str, kernel: str, opcode: str) -> list[str]:
        return [i for i in instructions(subject, architecture)[kernel] if i.startswith(opcode)]

    assert all(".128" in i for i in memory("memory", "probe_read", "LDG")) and memory("memory", "probe_read", "LDG")
    assert all(".128" in i for i in memory("memory", "probe_write", "STG")) and memory("memory", "probe_write", "STG")
    loads, stores = memory("memory", "probe_copy", "LDG"), memory("memory", "probe_copy", "STG")
    assert len(loads) == len(stores) > 0 and all(".128" in i for i in loads + stores)
    assert len(memory("memory", "probe_read_l1", "LDG")) == 1
    assert len(memory("memory", "probe_load_strided", "LDG")) == 1
    assert len(memory("memory", "probe_store_strided", "STG")) == 1
    assert len(memory("shared_memory", "probe_shared_load", "LDS")) == SHAPE["shared_per_iteration"]
    assert len(memory("shared_memory", "probe_shared_store", "STS")) == SHAPE["shared_per_iteration"]
    assert len(memory("control_flow", "probe_reduction", "RED")) == 1
    assert len(memory("control_flow", "probe_atomic", "ATOM")) == 1
    # Read before the wait, written after it: the values lived through it.
    kept = memory("timing", "probe_spin_registers", "LDG")
    assert len(kept) == SHAPE["live_registers"] == len(memory("timing", "probe_spin_registers", "STG"))
    code = instructions("timing", architecture)["probe_spin_registers"]
    clock = [i for i, t in enumerate(code) if "GLOBALTIMER" in t]
    assert max(i for i, t in enumerate(code) if t.startswith("LDG")) < max(clock)
    assert max(clock) < min(i for i, t in enumerate(code) if t.startswith("STG"))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_waiting_kernels_read_the_clock_in_their_loop(architecture: int) -> None:
    for kernel in ("probe_spin", "probe_spin_shared"):
        code = instructions("timing", architecture)[kernel]
        assert sum("GLOBALTIMER" in t for t in code) >= 2, kernel
