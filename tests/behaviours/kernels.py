"""PTX of kernels with any name: each lasts as long as it is told, and has a number of instructions of its own."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_$]*|[_$][A-Za-z0-9_$]+")

COUNT_OFFSET = 4096
"""Bytes from the start of the memory argument to the count of launches; before it lie the words that are loaded."""

MEMORY_BYTES = 8192

_HEADER = """\
.version 6.4
.target sm_75
.address_size 64
"""

_KERNEL = """\
.visible .entry {name}(.param .u64 ns, .param .u64 memory)
{{
  .reg .pred %p<4>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [ns];
  ld.param.u64 %rd2, [memory];
  cvta.to.global.u64 %rd2, %rd2;
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 1023;
  mul.wide.u32 %rd3, %r2, 4;
  add.u64 %rd3, %rd2, %rd3;
  ld.volatile.global.u32 %r3, [%rd3];
{work}
  mov.u64 %rd4, %globaltimer;
WAIT:
  mov.u64 %rd5, %globaltimer;
  sub.u64 %rd6, %rd5, %rd4;
  setp.lt.u64 %p1, %rd6, %rd1;
  @%p1 bra WAIT;
  // Nobody asks for so long: the work above has a reader all the same, and stays.
  setp.eq.u64 %p2, %rd1, 0xffffffffffffffff;
  @%p2 st.global.u32 [%rd3], %r3;
  // The first thread of the grid counts the launch.
  mov.u32 %r4, %tid.y;
  mov.u32 %r5, %tid.z;
  mov.u32 %r6, %ctaid.x;
  mov.u32 %r7, %ctaid.y;
  mov.u32 %r8, %ctaid.z;
  or.b32 %r9, %r1, %r4;
  or.b32 %r9, %r9, %r5;
  or.b32 %r9, %r9, %r6;
  or.b32 %r9, %r9, %r7;
  or.b32 %r9, %r9, %r8;
  setp.eq.u32 %p3, %r9, 0;
  @%p3 red.global.add.u32 [%rd2+{count}], 1;
  ret;
}}
"""


def entry_name(name: str) -> str:
    """What a device calls the kernel `name`: itself where PTX allows that as an identifier (C++'s mangled names are) and does not begin with ``k$``, else
    each byte that is not a letter or digit becomes ``$`` and two hexadecimal digits, after a ``k$``."""
    if _IDENTIFIER.fullmatch(name) and not name.startswith("k$"):
        return name
    return "k$" + "".join(c if c.isascii() and c.isalnum() else "".join(f"${b:02x}" for b in c.encode()) for c in name)


def own_instructions(name: str) -> int:
    """Multiply-adds that only a kernel of this name has, 1 to 64."""
    return 1 + zlib.crc32(name.encode()) % 64


def ptx(names: Iterable[str]) -> bytes:
    """One module with these kernels. Parameters: how long to wait (ns), the address of ``MEMORY_BYTES`` bytes."""
    parts = [_HEADER]
    for name in names:
        work = "\n".join(["  mad.lo.u32 %r3, %r3, %r3, %r1;"] * own_instructions(name))
        parts.append(_KERNEL.format(name=entry_name(name), work=work, count=COUNT_OFFSET))
    return "".join(parts).encode()
