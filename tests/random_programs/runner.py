"""Runs programs, and looks after each step and each program at what must hold."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterable
from pathlib import Path

import cuptiprof
from cuptiprof.sim.sim_device import Op, SimDevice

from . import surroundings
from .programs import Program, make
from .sessions import Run
from .work import GRAPH_KERNELS, Loop, Work

WARM = 100  # programs until caches, pools and threads that stay are there
MOST_GROWTH = 64 << 20  # bytes of memory that all further programs may add


class World:
    """What the sessions of one program share."""

    def __init__(self, number: int, folder: Path) -> None:
        self.number, self.folder = number, folder
        self.sim = SimDevice()
        self.loop = Loop()
        self._bursts = itertools.count()
        self._base: int | None = None
        self._kernels = 0

    def next_burst(self) -> int:
        return next(self._bursts)

    def session_begins(self) -> None:
        self._base, self._kernels = None, 0

    def launched(self, work: Work) -> None:
        self._kernels += sum(work.launched.values()) + GRAPH_KERNELS * work.graphs

    def check_truth(self) -> None:
        """The machine executed what was launched: profiling took nothing away and added nothing."""
        executed = self.sim.truth()["kernels"]
        if self._base is None:
            self._base = executed - self._kernels
        assert executed - self._base == self._kernels, f"{executed - self._base} executed of {self._kernels} launches"


def fork_and_look() -> None:
    """A child of fork: regions are quiet there, and it ends as it would without us."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        status = 1
        try:
            with cuptiprof.region("in the child"):
                status = 7
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def run_program(program: Program, number: int) -> None:
    """Raises AssertionError, or whatever went wrong."""
    folder = Path(tempfile.mkdtemp(prefix="cuptiprof-random-"))
    before = surroundings.fingerprint()
    world = World(number, folder)
    try:
        for i, (plan, beside) in enumerate(zip(program.plans, program.between, strict=True)):
            settings = surroundings.cupti_settings()
            world.session_begins()
            run = Run(world, plan, i)
            run.run(beside)
            del run
            world.check_truth()
            if plan.end != "drop":
                assert surroundings.cupti_settings() == settings
            if number % 100 == 99:
                fork_and_look()
        world.sim.call(Op.MODULE_UNLOAD)  # its names are for other kernels
    finally:
        world.loop.close()
        shutil.rmtree(folder, ignore_errors=True)
    after = surroundings.fingerprint()
    changed = [key for key in before if before[key] != after[key]]
    assert not changed, f"changed: {changed}"


def run(seed: int, numbers: Iterable[int], until: float | None = None, *, any_memory: bool = False) -> int:
    """Runs these programs of the series; returns how many. Raises on the first that fails, naming it."""
    threads = descriptors = memory = 0
    done = 0
    for number in numbers:
        if until is not None and time.monotonic() > until:
            break
        try:
            run_program(make(seed, number), number)
            if done == WARM:
                threads, descriptors = surroundings.threads(), surroundings.descriptors()
                memory = surroundings.resident_bytes()
            if done > WARM and done % 20 == 0:
                gc.collect()  # sessions that are done for good, with the threads that their tables have
                assert surroundings.settles(surroundings.collecting_threads, 0), "a session's threads stayed"
                most = threads + surroundings.pool_threads()
                assert surroundings.settles(surroundings.threads, most), f"{surroundings.threads()} threads, not {most}"
                assert surroundings.settles(surroundings.descriptors, descriptors), "more open files than before"
        except BaseException as error:
            error.add_note(f"python -m random_programs --seed {seed} --program {number}")
            raise
        done += 1
    if done > 2 * WARM and not any_memory:
        grown = surroundings.resident_bytes() - memory
        assert grown < MOST_GROWTH, f"{grown} bytes more after {done - WARM} programs"
    return done
