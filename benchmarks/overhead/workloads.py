"""What is run under each condition. A step is a fixed number of launches and ends when the GPU is done.

Steps open their regions through what the condition gives them: ours, NVTX's, torch's, or none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

Region = Callable[[str], AbstractContextManager[object]]

LOOP_LAUNCHES = 2000  # of one thread in one step
LOOP_REGION = 100  # launches in one region of a launch loop


@dataclass(frozen=True)
class Workload:
    """`step(region)` does the work once. `gpu_ns`: the same, returning GPU time by CUDA events; None where there are none.

    `prepare` is called, not timed, after every change of condition: the simulated machine is a fresh one then.
    """

    name: str
    launches: int
    step: Callable[[Region], None]
    prepare: Callable[[], None] = lambda: None
    gpu_ns: Callable[[Region], float] | None = None
    threads: int = 1


def in_threads(count: int, body: Callable[[], None]) -> None:
    """Run `body` in so many threads at once; an error in one is raised here."""
    failed: list[BaseException] = []

    def guarded() -> None:
        try:
            body()
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=guarded) for _ in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failed:
        raise failed[0]


def launch_loop(name: str, launch: Callable[[], None], synchronize: Callable[[], None], threads: int) -> Workload:
    """`launch` makes LOOP_REGION launches; threads share LOOP_LAUNCHES * threads between them."""

    def one_thread(region: Region) -> None:
        for _ in range(LOOP_LAUNCHES // LOOP_REGION):
            with region("loop"):
                launch()

    def step(region: Region) -> None:
        if threads == 1:
            one_thread(region)
        else:
            in_threads(threads, lambda: one_thread(region))
        synchronize()

    return Workload(name, LOOP_LAUNCHES * threads, step, threads=threads)
