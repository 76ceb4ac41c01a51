"""NumPy columns as Arrow arrays and back over the same memory. pyarrow's own ways between them import pandas, if it is installed: most
of a second, and 50 MB, in a process that may have no use for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuptiprof.data.lazy_columns import Array


def to_arrow(values: Array) -> Any:
    """A column of numbers."""
    import pyarrow as pa

    memory = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(memory.dtype), len(memory), [None, pa.py_buffer(memory)])


def to_numpy(array: Any, dtype: str) -> Array:
    """An Arrow array of numbers, cast if its type is another.

    Raises:
        ValueError, pyarrow.ArrowException: a row has no value, or one that does not fit.
    """
    import pyarrow as pa

    if array.null_count:
        raise ValueError("a row has no value")
    wanted = pa.from_numpy_dtype(np.dtype(dtype))
    same = array if array.type == wanted else array.cast(wanted)
    if not len(same):
        return np.zeros(0, dtype)
    return np.frombuffer(same.buffers()[1], dtype, same.offset + len(same))[same.offset :]
