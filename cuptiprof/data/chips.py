"""NVIDIA's chips, boards that carry them, and what an SM of each compute capability computes in a clock: the only list.

Three files beside this one: ``chips.csv``, ``boards.csv`` and ``compute_capabilities.csv`` (README.md says where each is from).
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import TypeAlias

ComputeCapability: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Chip:
    """A chip: ``like`` is the one whose ncu section lists hold for it, ``products`` are boards that carry it.

    The compute capability is None where NVIDIA has not said it.
    """

    name: str
    like: str
    compute_capability: ComputeCapability | None
    products: str


@dataclass(frozen=True)
class Board:
    """A product and its peak rates, dense: operations/s by way of computing, bytes/s of DRAM and host link (one direction).

    Attributes:
        chip: as libcupti names it.
        product: as the driver names it.
        clock_khz: highest SM clock.
        float64, float32: outside of tensor cores.
        float64_tensor, tf32, half, int8, float4: on tensor cores; 0 where the chip's have no such type. `half` is float16.
        bfloat16: whether tensor cores take bfloat16 (at the rate of float16).
        sms: streaming multiprocessors.
        source: where the figures come from.
    """

    name: str
    chip: str
    product: str
    sms: int
    clock_khz: int
    float64: float
    float64_tensor: float
    float32: float
    tf32: float
    half: float
    bfloat16: bool
    int8: float
    float4: float
    dram: float
    link: float
    source: str

    @property
    def architecture(self) -> int:
        """Compute capability * 10, e.g. 90."""
        major, minor = CHIPS[self.chip].compute_capability or (0, 0)
        return 10 * major + minor

    def tensor_peak(self, dtype: str, *, tf32: bool = False) -> float:
        """Operations/s of a matrix product of elements `dtype` on tensor cores; 0 if they do not take it."""
        if dtype == "float64":
            return self.float64_tensor
        if dtype == "float16" or (dtype == "bfloat16" and self.bfloat16):
            return self.half
        if dtype.startswith("float8"):
            return self.int8 if self.architecture >= 89 else 0.0  # FP8 runs at the rate of INT8 where it exists
        if dtype in ("int8", "float4"):
            return self.int8 if dtype == "int8" else self.float4
        return self.tf32 if dtype == "float32" and tf32 else 0.0

    def peak(self, dtype: str, *, tf32: bool = False) -> float:
        """Operations/s of a matrix product of elements `dtype` ("float32", "bfloat16", ...).

        Args:
            tf32: float32 may be rounded to TF32 (torch's ``allow_tf32``).
        """
        return self.tensor_peak(dtype, tf32=tf32) or self.vector_peak(dtype)

    def vector_peak(self, dtype: str) -> float:
        """Operations/s outside of tensor cores."""
        return self.float64 if dtype in ("float64", "complex128") else self.float32


def rows_of(file: str) -> Iterator[dict[str, str]]:
    """The lines of a CSV file of this room."""
    text = resources.files("cuptiprof").joinpath(f"data/{file}").read_text(encoding="utf-8")
    return csv.DictReader(text.splitlines())


def parsed(compute_capability: str) -> ComputeCapability:
    """``"9.0"`` as (9, 0)."""
    major, minor = compute_capability.split(".")
    return int(major), int(minor)


def _board(row: dict[str, str]) -> Board:
    rates = {
        n: float(row[n])
        for n in ("float64", "float64_tensor", "float32", "tf32", "half", "int8", "float4", "dram", "link")
    }
    return Board(
        name=row["board"],
        chip=row["chip"],
        product=row["product"],
        sms=int(row["sms"]),
        clock_khz=int(row["clock_khz"]),
        bfloat16=row["bfloat16"] == "1",
        source=row["source"],
        **rates,
    )


CHIPS: dict[str, Chip] = {
    row["chip"]: Chip(row["chip"], row["like"], parsed(row["cc"]) if row["cc"] else None, row["products"])
    for row in rows_of("chips.csv")
}
"""By name, in the order of generations."""

BOARDS: dict[str, Board] = {row["board"]: _board(row) for row in rows_of("boards.csv")}
"""By name: those of which the data sheets are here, and which the stand-in can be."""


def chips_called(name: str) -> list[str]:
    """Chips that `name` may mean, in whatever case: their own name, a product ("RTX 4090") or a word of one ("H100", "4090")."""
    wanted = " ".join(name.upper().split())
    by_name = [c.name for c in CHIPS.values() if c.name == wanted]
    products = {c.name: [p.strip().upper() for p in c.products.split(",")] for c in CHIPS.values()}
    by_product = [chip for chip, of in products.items() if wanted in of]
    by_word = [chip for chip, of in products.items() if wanted in " ".join(of).split()]
    return by_name or by_product or by_word


def board_called(name: str) -> str | None:
    """The board that `name` means, in whatever case: its own, or the first that carries a chip of that name."""
    wanted = name.strip().upper()
    found = [b.name for b in BOARDS.values() if b.name.upper() == wanted]
    found += [b.name for b in BOARDS.values() if b.chip == wanted]
    return found[0] if found else None


@functools.lru_cache(maxsize=1)
def flops_per_clock() -> dict[ComputeCapability, dict[str, int]]:
    """Operations a clock and SM (a fused multiply-add is two), dense, by "float32", "float64", "tf32", "half", "byte"
    and "float4".

    0: the chip computes it otherwise. A compute capability that is not here: not known.
    """
    names = ("float32", "float64", "tf32", "half", "byte", "float4")
    return {
        parsed(row["cc"]): {name: int(row[f"flops_{name}"]) for name in names}
        for row in rows_of("compute_capabilities.csv")
        if row["flops_float32"]
    }
