"""What a program of damaged files does by hand, for as long as is asked: one seed after the other, each with a limit of time."""

from __future__ import annotations

import argparse
import resource
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

_LONGEST_S = 20


def run_for_minutes(doc: str | None, memory: int, prepare: Callable[[Path], Callable[[int], bool]]) -> None:
    """Ends the process: 0, no fault.

    Args:
        memory: bytes of address space that there are.
        prepare: in a folder of its own, makes what tries a seed: whether its file was opened; AssertionError is a fault.
    """
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    until, seed, opened, faults = time.monotonic() + 60 * options.minutes, options.seed, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        try_one = prepare(Path(folder))
        while time.monotonic() < until:
            signal.alarm(_LONGEST_S)  # ends the process: what hangs is a fault
            try:
                opened += try_one(seed)
            except AssertionError as error:
                faults += 1
                print(error, flush=True)
            signal.alarm(0)
            seed += 1
    print(f"{seed - options.seed} files from seed {options.seed}: {opened} opened, {faults} faults")
    raise SystemExit(bool(faults))
