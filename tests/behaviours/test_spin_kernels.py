"""The kernels of the scenarios, without a GPU: NVIDIA's assembler takes them, and their machine code does what is counted on."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kernels import COUNT_OFFSET, MEMORY_BYTES, entry_name, own_instructions, ptx

from cuptiprof.device.clock_kernel import clock_stamp_ptx
from cuptiprof.device.hold import hold_ptx

NAMES = [
    "_Z3addPf",
    "add",
    "k",
    "node",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    "a/b c",
    "ü",
    "9lives",
    "$",
    ".entry",
]
_TOOLS = [str(Path(p) / "nvidia/cu13/bin") for p in sys.path if p.endswith("site-packages")]


def tool(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path=":".join([*_TOOLS, "/usr/local/cuda/bin"]))
    if found is None:
        pytest.skip(f"no {name} on this machine")
    return found


def assembled(names: list[str], architecture: str, folder: Path) -> Path:
    source, cubin = folder / "kernels.ptx", folder / f"{architecture}.cubin"
    source.write_bytes(ptx(names))
    command = [tool("ptxas"), f"-arch={architecture}", str(source), "-o", str(cubin)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return cubin


def instructions(cubin: Path) -> dict[str, list[str]]:
    """Kernel -> its machine instructions without predicates, up to the endless loop that pads it."""
    listing = subprocess.run(
        [tool("nvdisasm"), "-c", str(cubin)], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    out: dict[str, list[str]] = {}
    name = ""
    for line in listing.splitlines():
        if match := re.match(r"\s*\.section\s+\.text\.([^,\s]+)", line):
            name = match[1]
            out[name] = []
        elif (match := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][^;]*?)\s*;", line)) and name:
            out[name].append(match[1])
    for name, code in out.items():
        last = max(i for i, text in enumerate(code) if text.startswith("EXIT"))
        out[name] = code[: last + 1]
    return out


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
def test_any_name_becomes_a_kernel(architecture: str, tmp_path: Path) -> None:
    code = instructions(assembled(NAMES, architecture, tmp_path))
    assert set(code) == {entry_name(n) for n in NAMES}


@pytest.mark.parametrize("architecture", ["sm_75", "sm_90"])
def test_only_waiting_makes_the_number_of_instructions_uncertain(architecture: str, tmp_path: Path) -> None:
    """One backward branch; each name has its own straight line; the count and the word are memory accesses that stay."""
    names = ["a", "b", "c", "_Z3addPf"]
    code = instructions(assembled(names, architecture, tmp_path))
    lengths = {}
    for name in names:
        opcodes = [i.split()[0].split(".")[0] for i in code[name]]
        assert opcodes.count("BRA") == 1 and not {"CALL", "JMP", "BRX", "WARPSYNC"} & set(opcodes)
        assert sum(o in ("RED", "ATOM", "ATOMG", "REDG") for o in opcodes) == 1
        assert opcodes.count("LDG") == 1 and opcodes.count("STG") == 1
        lengths[name] = len(opcodes) - own_instructions(name)
    assert len(set(map(own_instructions, names))) == len(names)
    assert max(lengths.values()) - min(lengths.values()) <= 4  # the schedule may differ by a register or two


def test_names_that_ptx_allows_are_kept_and_others_stay_apart() -> None:
    for name in ("_Z3addPf", "sgemm_128", "a$2f", "_$"):
        assert entry_name(name) == name
    others = ["a/b", "a b", "a.b", "é", "e", "$", "_", "1", "", "/", "k$2f", "k$"]
    renamed = [entry_name(n) for n in others]
    assert len(set(renamed)) == len(others)
    assert all(re.fullmatch(r"[A-Za-z_$][A-Za-z0-9_$]+|[A-Za-z]", n) for n in renamed)


def test_the_words_and_the_count_do_not_overlap() -> None:
    assert COUNT_OFFSET >= 1024 * 4 and COUNT_OFFSET + 4 <= MEMORY_BYTES


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
def test_the_harness_kernels_are_understood(architecture: str, tmp_path: Path) -> None:
    """Those of the benchmark harness that are PTX: the stream's hold and the stamp of time and cycles."""
    for number, text in enumerate((hold_ptx(7, 5), clock_stamp_ptx(7, 5))):
        source, cubin = tmp_path / f"{number}.ptx", tmp_path / f"{number}.cubin"
        source.write_bytes(text)
        done = subprocess.run(
            [tool("ptxas"), f"-arch={architecture}", str(source), "-o", str(cubin)],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    (code,) = instructions(tmp_path / "1.cubin").values()
    stores = [i for i, line in enumerate(code) if line.startswith("ST") and "128" in line]
    times = [i for i, line in enumerate(code) if "SR_GLOBALTIMER" in line or "SR_CLOCK" in line]
    assert len(stores) == 1 and len(times) >= 2 and max(times) < stores[0]
