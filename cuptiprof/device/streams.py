"""Streams of the libraries that give the GPU work: which one is current, its handle, and one that can be captured.

CuPy has a current stream, as PyTorch (``torch_gpu``). Numba's kernels take theirs at each launch, so it has to be told. XLA, which JAX
uses, shows its streams to nobody.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from cuptiprof.errors import BenchError

LEGACY_STREAMS = (0, 1)
"""The default stream of CUDA's calls, and CU_STREAM_LEGACY, which is the same: neither can be captured."""


def handle_of(stream: object) -> int:
    """The driver's handle of a stream: of an object by the CUDA stream protocol (cuda.core, PyTorch, CuPy), of CuPy, PyTorch or
    Numba of before that, or the handle itself.

    Raises:
        BenchError: it is no stream.
    """
    protocol = getattr(stream, "__cuda_stream__", None)
    if callable(protocol):
        version, handle = protocol()
        if version != 0:
            raise BenchError(
                f"{stream!r} speaks version {version} of the CUDA stream protocol, which is not known here"
            )
        return int(handle)
    for name in ("cuda_stream", "ptr"):
        if isinstance(handle := getattr(stream, name, None), int):
            return handle
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    if hasattr(stream, "handle") and hasattr(type(stream), "__int__"):  # Numba's
        return int(stream)  # type: ignore[call-overload, no-any-return]
    raise BenchError(
        f"stream={stream!r} is no stream", hint="an object of CuPy's, Numba's, PyTorch's or cuda.core's, or its handle"
    )


def current_stream() -> int:
    """Handle of the stream that is current where CuPy is in use; else the default one."""
    cupy: Any = sys.modules.get("cupy")
    return int(cupy.cuda.get_current_stream().ptr) if cupy is not None else 0


@contextlib.contextmanager
def capturable(stream: int, function: Callable[[], object]) -> Iterator[Any]:
    """A stream in which `function` works inside, and that can be captured: `stream`, or one of CuPy's in place of the default one,
    to be kept as long as what was captured: the part of CuPy's memory pool that it works in goes by the stream's handle.

    Raises:
        BenchError: the function works in the default stream or in one that nobody knows.
    """
    if stream not in LEGACY_STREAMS:
        yield stream
        return
    cupy: Any = sys.modules.get("cupy")
    if cupy is None:
        raise BenchError("the default stream cannot be captured into a CUDA graph", hint=_hint())
    with cupy.cuda.Stream(non_blocking=True) as own:
        function()  # its memory pool has a part for each stream: what it would allocate during the capture is there then
        own.synchronize()
        yield own


def _hint() -> str:
    if "jax" in sys.modules:
        return 'the streams of JAX cannot be had: strategy="kernel"'
    if "numba.cuda" in sys.modules:
        return 'Numba: s = cuda.stream(), kernel[grid, block, s](...), and stream=s here; or strategy="kernel"'
    return 'let it work in a stream of its own, and say stream= here; or strategy="kernel"'
