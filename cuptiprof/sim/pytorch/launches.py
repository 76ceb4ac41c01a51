"""What the model answers: launches, copies, sets and waits, how they are named, and how long each takes."""

from __future__ import annotations

from dataclasses import dataclass

from cuptiprof.data.chips import Board
from cuptiprof.sim import roofline


@dataclass(frozen=True)
class KernelWork:
    """One launch. Work is stated, not time: the roofline turns it into a duration.

    Attributes:
        shared: dynamic shared memory, bytes.
        operations: arithmetic operations; peak: their rate, operations/s (None: float32 outside of tensor cores).
        efficiency, access: keys of roofline.COMPUTE_EFFICIENCY and MEMORY_EFFICIENCY.
        moved: bytes from and to DRAM.
        whole_sm: a block takes an SM for itself, so grids that do not divide by the SMs leave some idle.
    """

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int] = (128, 1, 1)
    registers: int = 32
    shared: int = 0
    operations: float = 0.0
    peak: float | None = None
    efficiency: str = "other"
    moved: float = 0.0
    access: str = "stream"
    whole_sm: bool = False


@dataclass(frozen=True)
class Copy:
    """cudaMemcpyAsync; `kind` is "HtoD", "DtoH" or "DtoD"."""

    kind: str
    bytes: int


@dataclass(frozen=True)
class Set:
    """cudaMemsetAsync to 0."""

    bytes: int


@dataclass(frozen=True)
class Wait:
    """cudaStreamSynchronize."""


Work = KernelWork | Copy | Set | Wait

_C_TYPES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
    "float8_e4m3fn": "c10::Float8_e4m3fn", "float8_e5m2": "c10::Float8_e5m2",
}  # fmt: skip


def kernel_name(kernel: str, op: str, dtype: str) -> str:
    """The one scheme of names: the function says how the tensors are gone over, its template arguments what is done to an element.

    Args:
        kernel: the function; without a namespace it is at::native's.
        op: operator; underscores around it (internal, in place) do not matter.
        dtype: element type.
    """
    t = _C_TYPES.get(dtype, "char")
    function = kernel if "::" in kernel else f"at::native::{kernel}"
    return f"void {function}<{t}, at::native::{op.strip('_')}_kernel_cuda<{t}> >({t}*, {t} const*, long)"


def grid(count: int, per_block: int) -> tuple[int, int, int]:
    """A one-dimensional grid over `count` elements."""
    return (max(1, -(-count // per_block)), 1, 1)


def duration_ns(chip: Board, work: Work) -> int:
    """Modelled duration of one piece of work, ns (0: a wait has none of its own)."""
    if isinstance(work, KernelWork):
        return roofline.kernel_ns(
            chip,
            operations=work.operations,
            peak=work.peak,
            efficiency=work.efficiency,
            blocks=work.grid[0] * work.grid[1] * work.grid[2] if work.whole_sm else None,
            moved=work.moved,
            access=work.access,
        )
    if isinstance(work, Copy):
        return roofline.copy_ns(chip, work.bytes, on_device=work.kind == "DtoD")
    return roofline.kernel_ns(chip, moved=work.bytes) if isinstance(work, Set) else 0
