"""Decode of kernel records against bare iteration by NVIDIA's own library, in one process, in turn. Bar: 4x, and flat.

Builds ``decode_bench`` (CMake) and runs it with the libcupti that cuptiprof would use; needs no GPU with CUDA 13.0 or 13.1.
"""

from __future__ import annotations

import functools
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.common import arguments, finish, in_turn, ratio, significant, summary
from cuptiprof.device.locate import find_cupti

ROOT = Path(__file__).resolve().parents[2]


class Program:
    """decode_bench: measures what it is asked for, once, and answers in JSON."""

    def __init__(self, path: Path, libcupti: str) -> None:
        self._child = subprocess.Popen([path, libcupti], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.about = self._answer()

    def measure(self, what: str, records: int) -> dict[str, float]:
        """ns per record of "bare" iteration or of "decode", and what was kept."""
        assert self._child.stdin is not None
        self._child.stdin.write(f"{what} {records}\n")
        self._child.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """Let it end."""
        self._child.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise SystemExit(f"decode_bench ended with status {self._child.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def measure(program: Program, records: int, rounds: int, seconds: float) -> dict[str, Any]:
    """Both, in turn."""
    cases = {what: functools.partial(program.measure, what, records) for what in ("bare", "decode")}
    found = in_turn(cases, rounds, seconds=seconds)
    kept = found["decode"].reported
    return {
        "records": int(kept["rows"][0]),
        "bare_ns": summary(found["bare"].samples),
        "decode_ns": summary(found["decode"].samples),
        "decode to bare (bar 4)": ratio(found.verdict("decode", "bare")),
        "bytes_per_record": significant(float(kept["bytes"][0] / kept["rows"][0])),
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--records", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--rounds", type=int, default=96)
    parser.add_argument("--seconds", type=float, default=60, help="of each number of records; then fewer rounds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as build:
        configure = ["cmake", "-S", str(ROOT), "-B", build, "-DCUPTIPROF_PYTHON=OFF", "-DCUPTIPROF_BENCHMARKS=ON"]
        subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", build, "--target", "decode_bench"], check=True, stdout=subprocess.DEVNULL)
        program = Program(Path(build) / "decode_bench", find_cupti().path)
        sizes = [measure(program, n, options.rounds, options.seconds) for n in options.records]
        program.close()
    finish({"benchmark": "decode", "unit": "ns per record", **program.about, "sizes": sizes}, options.out)


if __name__ == "__main__":
    main()
