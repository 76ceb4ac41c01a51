"""One question, one JSON line: python -m benchmarks.probes NAME [--device cuda|sim]; without a name, the questions."""

from __future__ import annotations

import argparse
import inspect
import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

from benchmarks.gpu_work import Work, make_work
from benchmarks.probes import beside, clocks, ranges, sampling

Probe = Callable[[Work], dict[str, Any]]
PROBES: dict[str, Probe] = {p.__name__: p for m in (beside, ranges, sampling, clocks) for p in m.PROBES}


def question(probe: Probe) -> str:
    """The first paragraph of its documentation."""
    return " ".join((inspect.getdoc(probe) or "").partition("\n\n")[0].split())


def plain(value: Any) -> Any:
    """JSON of what NumPy gives."""
    return value.item() if hasattr(value, "item") else str(value)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", nargs="?", choices=PROBES)
    parser.add_argument("--device", choices=("cuda", "sim"), default="sim")
    options = parser.parse_args()
    if not options.name:
        for name, probe in PROBES.items():
            print(f"{name:34} {question(probe)}")
        return 0
    probe = PROBES[options.name]
    line: dict[str, Any] = {"probe": options.name, "question": question(probe), "simulated": options.device == "sim"}
    try:
        line["answer"] = probe(make_work(options.device))
    except Exception as e:
        line["error"] = f"{type(e).__name__}: {e}"
        traceback.print_exc()
    print(json.dumps(line, default=plain), flush=True)
    return 1 if "error" in line else 0


if __name__ == "__main__":
    sys.exit(main())
