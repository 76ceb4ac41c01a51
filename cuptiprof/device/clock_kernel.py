"""A kernel that writes down what time it is on the GPU and how far the clock of an SM has counted. Two of them: the SM's clock in between.

NVBench reads them around each of its samples. The clock is that of SM 0 alone, as each SM counts for itself.
"""

from __future__ import annotations

from cuptiprof.device.hold import ptx_target

CLOCK_STAMP = "cuptiprof_clock_stamp"
STAMP_BYTES = 16
"""of a stamp: GPU time, ns, and cycles, 64 bits each; zeros: no block ran on SM 0."""
GPU_TIME_STEP_NS = 1000
"""%globaltimer moves in steps of up to a microsecond, by chip."""

_PTX = """\
.version 6.4
.target sm_{target}
.address_size 64
.visible .entry {name}(.param .u64 stamp)
{{
  .reg .pred %p<2>;
  .reg .b32 %r<2>;
  .reg .b64 %rd<5>;
  mov.u32 %r1, %smid;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra END;
  ld.param.u64 %rd1, [stamp];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u64 %rd3, %globaltimer;
  mov.u64 %rd4, %clock64;
  st.global.v2.u64 [%rd2], {{%rd3, %rd4}};
END:
  ret;
}}
"""


def clock_stamp_ptx(major: int, minor: int) -> bytes:
    """The kernel :data:`CLOCK_STAMP` for a GPU of this compute capability: a block of one thread for each SM. Its parameter: address."""
    return _PTX.format(name=CLOCK_STAMP, target=ptx_target(major, minor)).encode()
