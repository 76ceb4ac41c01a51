"""The Triton workload's kernel; a file of its own because Triton reads the source."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def add_kernel(a, b, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """out[i] = a[i] + b[i]."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(a + at, mask=mask) + tl.load(b + at, mask=mask), mask=mask)
