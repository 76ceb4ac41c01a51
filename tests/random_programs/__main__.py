from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterable

from .programs import make
from .runner import run


def main() -> None:
    parser = argparse.ArgumentParser(prog="random_programs", description="Random programs over the public surface.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=int, default=2000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--program", type=int, help="only this one, printed")
    parser.add_argument("--minutes", type=float, help="as many as fit")
    parser.add_argument("--any-memory", action="store_true", help="may grow: sanitizers keep what is freed")
    arguments = parser.parse_args()
    numbers: Iterable[int] = range(arguments.first, arguments.first + arguments.programs)
    until = None
    if arguments.program is not None:
        print(make(arguments.seed, arguments.program))
        numbers = [arguments.program]
    elif arguments.minutes:
        numbers, until = itertools.count(arguments.first), time.monotonic() + 60 * arguments.minutes
    began = time.monotonic()
    done = run(arguments.seed, numbers, until, any_memory=arguments.any_memory)
    print(f"{done} programs of seed {arguments.seed} in {time.monotonic() - began:.0f} s")


main()
