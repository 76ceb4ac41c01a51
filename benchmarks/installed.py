"""Runs a program of the installed package from the checkout, where `python -m` would take the sources without the native module.

Importing the package `benchmarks`, which comes first, has put the checkout last on the path.
"""

from __future__ import annotations

import runpy
import sys


def main() -> None:
    """`python -m benchmarks.installed MODULE ARGUMENTS`: as `python -m MODULE ARGUMENTS` elsewhere."""
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
