"""What became of a point that raised, and the memory it held."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from types import TracebackType
from typing import Any

from cuptiprof.bench.results.row import MAX_TEXT, Failure, FailureKind
from cuptiprof.errors import CuptiError, CuptiprofError


def failure_of(error: BaseException, file: str) -> Failure:
    """`error` as a row holds it.

    Args:
        file: of the benchmark: the last line of it that the error passed is named.
    """
    text = error.message if isinstance(error, CuptiprofError) else str(error)
    kind: FailureKind = "out of memory" if is_out_of_memory(error) else "error"
    return Failure(kind, f"{type(error).__name__}: {text}".rstrip(": ")[:MAX_TEXT], _where(error.__traceback__, file))


def is_out_of_memory(error: BaseException) -> bool:
    """Of the host or the GPU, whoever says it: PyTorch's and CuPy's classes have one name, CUPTI and the driver a code."""
    if isinstance(error, CuptiError):
        return "OUT_OF_MEMORY" in error.name
    return isinstance(error, MemoryError) or any(c.__name__ == "OutOfMemoryError" for c in type(error).__mro__)


def release(error: BaseException) -> None:
    """Let go of what the frames of `error` hold (tensors of the point that failed), and of the allocator's cache."""
    seen: BaseException | None = error
    for _ in range(100):  # a chain of causes may be a ring
        if seen is None:
            break
        traceback.clear_frames(seen.__traceback__)
        seen.__traceback__, seen = None, seen.__cause__ or seen.__context__
    gc.collect()
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        try:
            torch.cuda.empty_cache()
        except RuntimeError:
            return  # a context that an illegal access has broken: the next point will say so


def _where(tb: TracebackType | None, file: str) -> str:
    last = ""
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == file:
            last = f"{os.path.basename(file)}:{tb.tb_lineno}"
        tb = tb.tb_next
    return last
