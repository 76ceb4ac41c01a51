"""A copy of NVTX as every library that uses it carries one, in ctypes: it asks our library for its handlers, which tests then
call as programs would, also with what no header would let through.
"""

from __future__ import annotations

import ctypes as c
from typing import Any

CORE, CUDA, CUDA_RUNTIME, CORE2 = 1, 2, 4, 5
_SIZES = {CORE: 16, CUDA: 9, CUDA_RUNTIME: 7, CORE2: 16}  # one more than the highest callback ID
ASCII, WIDE, REGISTERED = 1, 2, 3


class Payload(c.Union):
    _fields_ = [("u64", c.c_uint64), ("i64", c.c_int64), ("f64", c.c_double), ("u32", c.c_uint32), ("i32", c.c_int32),
                ("f32", c.c_float)]  # fmt: skip


class Attributes(c.Structure):
    """nvtxEventAttributes_v2."""

    _fields_ = [("version", c.c_uint16), ("size", c.c_uint16), ("category", c.c_uint32), ("color_type", c.c_int32),
                ("color", c.c_uint32), ("payload_type", c.c_int32), ("reserved", c.c_int32), ("payload", Payload),
                ("message_type", c.c_int32), ("message", c.c_void_p)]  # fmt: skip


class _Callbacks(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("get_module", c.c_void_p)]


_GET_MODULE = c.CFUNCTYPE(c.c_int, c.c_uint32, c.POINTER(c.c_void_p), c.POINTER(c.c_uint))
_GET_TABLE = c.CFUNCTYPE(c.c_void_p, c.c_uint32)

_CALLS: dict[str, tuple[int, int, Any, tuple[Any, ...]]] = {
    "mark_ex": (CORE, 1, None, (c.c_void_p,)),
    "mark": (CORE, 2, None, (c.c_char_p,)),
    "start": (CORE, 5, c.c_uint64, (c.c_char_p,)),
    "end": (CORE, 7, None, (c.c_uint64,)),
    "push_ex": (CORE, 8, c.c_int, (c.c_void_p,)),
    "push": (CORE, 9, c.c_int, (c.c_char_p,)),
    "push_wide": (CORE, 10, c.c_int, (c.c_wchar_p,)),
    "pop": (CORE, 11, c.c_int, ()),
    "name_category": (CORE, 12, None, (c.c_uint32, c.c_char_p)),
    "name_thread": (CORE, 14, None, (c.c_uint32, c.c_char_p)),
    "name_device": (CUDA_RUNTIME, 1, None, (c.c_int, c.c_char_p)),
    "domain_mark": (CORE2, 1, None, (c.c_void_p, c.c_void_p)),
    "domain_start": (CORE2, 2, c.c_uint64, (c.c_void_p, c.c_void_p)),
    "domain_end": (CORE2, 3, None, (c.c_void_p, c.c_uint64)),
    "domain_push": (CORE2, 4, c.c_int, (c.c_void_p, c.c_void_p)),
    "domain_pop": (CORE2, 5, c.c_int, (c.c_void_p,)),
    "domain_name_category": (CORE2, 8, None, (c.c_void_p, c.c_uint32, c.c_char_p)),
    "register": (CORE2, 10, c.c_void_p, (c.c_void_p, c.c_char_p)),
    "create": (CORE2, 12, c.c_void_p, (c.c_char_p,)),
    "destroy": (CORE2, 14, None, (c.c_void_p,)),
}


class NvtxCopy:
    """Initialised by the library at `path`; its handlers are its methods."""

    def __init__(self, path: str) -> None:
        self.library = c.CDLL(path)
        self._slots = {module: (c.c_void_p * size)() for module, size in _SIZES.items()}
        self._tables = {
            module: (c.c_void_p * size)(None, *(c.addressof(slots) + 8 * i for i in range(1, size)))
            for (module, size), slots in zip(_SIZES.items(), self._slots.values(), strict=True)
        }
        self._get_module = _GET_MODULE(self._module)
        self._callbacks = _Callbacks(16, c.cast(self._get_module, c.c_void_p).value)
        self._get_table = _GET_TABLE(lambda table: c.addressof(self._callbacks) if table == 1 else None)
        if self.library.InitializeInjectionNvtx2(self._get_table) != 1:
            raise RuntimeError("the library refused")

    def _module(self, module: int, table: Any, size: Any) -> int:
        if module not in _SIZES:
            return 0
        table[0] = c.addressof(self._tables[module])
        size[0] = _SIZES[module]
        return 1

    def __getattr__(self, name: str) -> Any:
        if name not in _CALLS:
            raise AttributeError(name)
        module, call, result, arguments = _CALLS[name]
        function = c.CFUNCTYPE(result, *arguments)(self._slots[module][call])
        setattr(self, name, function)
        return function


def said(text: bytes | int | None = None, **fields: Any) -> Attributes:
    """Attributes with a message: bytes, or the handle of a registered string."""
    out = Attributes(version=3, size=c.sizeof(Attributes))
    if isinstance(text, bytes):
        out._keep = c.create_string_buffer(text)
        out.message_type, out.message = ASCII, c.addressof(out._keep)
    elif text is not None:
        out.message_type, out.message = REGISTERED, text
    for name, value in fields.items():
        setattr(out, name, value)
    return out
