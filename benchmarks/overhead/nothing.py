"""The condition "nothing": the workloads in a process that never imports cuptiprof. Reads "workload steps" lines, answers
each with a JSON list of ns a step. Started by ``benchmarks.overhead``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from benchmarks.overhead.workloads import Workload

ROOT = Path(__file__).resolve().parents[2]


class Elsewhere:
    """The other process, from this side."""

    def __init__(self, library: Path | str) -> None:
        command = [
            sys.executable,
            "-m",
            "benchmarks.overhead.nothing",
            str(library) if isinstance(library, Path) else "",
        ]
        self._child = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, workload: Workload, steps: int) -> list[float]:
        """Times of `steps` steps, ns. Raises OSError when the process is gone, RuntimeError with what it says went wrong."""
        asked, answers = self._pipes()
        asked.write(f"{workload.name} {steps}\n")
        asked.flush()
        line = answers.readline()
        if not line:
            raise OSError("the process without cuptiprof ended")
        answer: Any = json.loads(line)
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return [float(x) for x in answer]

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        assert self._child.stdin is not None and self._child.stdout is not None
        return self._child.stdin, self._child.stdout

    def __enter__(self) -> Elsewhere:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for pipe in self._pipes():
            pipe.close()
        try:
            self._child.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._child.kill()


def main() -> None:
    from benchmarks.overhead import workloads_cuda
    from benchmarks.overhead.conditions import no_region
    from benchmarks.overhead.rounds import timed_steps

    library = Path(sys.argv[1]) if sys.argv[1] else "not built"
    made = {w.name: w for w in workloads_cuda.workloads(library)[0]}
    assert "cuptiprof" not in sys.modules
    for line in sys.stdin:
        name, _, steps = line.strip().partition(" ")
        try:
            answer: list[float] | str = timed_steps(made[name], no_region, int(steps))
        except Exception as e:
            answer = f"{type(e).__name__}: {e}"
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
