"""Decode of kernel records against bare iteration by NVIDIA's own library, in one process, interleaved. Bar: 4x, and flat.

Builds ``decode_bench`` (CMake) and runs it with the libcupti that cuptiprof would use; needs no GPU with CUDA 13.0 or 13.1.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

from benchmarks.common import arguments, finish
from cuptiprof.locate import find_cupti

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--records", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as build:
        configure = ["cmake", "-S", str(ROOT), "-B", build, "-DCUPTIPROF_PYTHON=OFF", "-DCUPTIPROF_BENCHMARKS=ON"]
        subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", build, "--target", "decode_bench"], check=True, stdout=subprocess.DEVNULL)
        program = [f"{build}/decode_bench", find_cupti().path, *map(str, options.records)]
        data = json.loads(subprocess.run(program, check=True, capture_output=True, text=True).stdout)
    finish({"benchmark": "decode", "unit": "ns per record", **data}, options.out)


if __name__ == "__main__":
    main()
