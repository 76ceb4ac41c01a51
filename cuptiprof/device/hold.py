"""A kernel of one thread that waits by the GPU's own clock: while it runs, a stream takes work and does none of it.

It ends by itself. One that waits for the host (NVBench's) ends sooner, but never if the host waits for the GPU meanwhile.
"""

from __future__ import annotations

HOLD = "cuptiprof_hold"

OLDEST, NEWEST = 70, 75
"""Targets (compute capability * 10) between which the text is made: the driver compiles it for any newer GPU."""

_PTX = """\
.version 6.4
.target sm_{target}
.address_size 64
.visible .entry {name}(.param .u64 ns)
{{
  .reg .pred %p<2>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [ns];
  mov.u64 %rd2, %globaltimer;
WAIT:
  mov.u64 %rd3, %globaltimer;
  sub.u64 %rd4, %rd3, %rd2;
  setp.lt.u64 %p1, %rd4, %rd1;
  @%p1 bra WAIT;
  ret;
}}
"""


def ptx_target(major: int, minor: int) -> int:
    """For which architecture PTX of ours is written on a GPU of this compute capability."""
    return min(max(10 * major + minor, OLDEST), NEWEST)


def hold_ptx(major: int, minor: int) -> bytes:
    """The kernel :data:`HOLD` for a GPU of this compute capability. Its parameter: ns."""
    return _PTX.format(name=HOLD, target=ptx_target(major, minor)).encode()
