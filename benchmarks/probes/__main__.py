"""Questions to the hardware, one JSON line each: python -m benchmarks.probes NAME | --all [--device cuda|sim]

Without a name, the questions. With --all each one runs in a process of its own, so that a hang or a crash is its answer.
"""

from __future__ import annotations

import argparse
import faulthandler
import inspect
import json
import multiprocessing
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from benchmarks.gpu_work import Work, make_work
from benchmarks.probes import (
    allocations,
    attach,
    beside,
    buffers,
    capabilities,
    capturing,
    clocks,
    counting,
    graphs,
    nvtx_copies,
    peers,
    ranges,
    sampling,
    tracing,
)

Probe = Callable[[Work], dict[str, Any]]
PROBES: dict[str, Probe] = {
    p.__name__: p
    for m in (
        capabilities,
        attach,
        buffers,
        beside,
        ranges,
        counting,
        peers,
        tracing,
        graphs,
        capturing,
        nvtx_copies,
        allocations,
        sampling,
        clocks,
    )
    for p in m.PROBES
}
PROBE_SECONDS = 25


def question(probe: Probe) -> str:
    """The first paragraph of its documentation."""
    return " ".join((inspect.getdoc(probe) or "").partition("\n\n")[0].split())


def assumed(probe: Probe) -> str:
    """What the code takes for granted: the paragraph that begins with "Assumed:"; "" where there is none."""
    paragraphs = (" ".join(p.split()) for p in (inspect.getdoc(probe) or "").split("\n\n"))
    return next((p.removeprefix("Assumed: ") for p in paragraphs if p.startswith("Assumed: ")), "")


def plain(value: Any) -> Any:
    """JSON of what NumPy gives."""
    return value.item() if hasattr(value, "item") else str(value)


def head(name: str, device: str) -> dict[str, Any]:
    """What every answer begins with."""
    return {"probe": name, "question": question(PROBES[name]), "simulated": device == "sim"}


def ask(name: str, device: str) -> bool:
    """Run a probe here and print its line; False: it raised."""
    faulthandler.enable()
    line = head(name, device)
    try:
        line["answer"] = PROBES[name](make_work(device))
    except Exception as e:
        line["error"] = f"{type(e).__name__}: {e}"
        traceback.print_exc()
    print(json.dumps(line, default=plain), flush=True)
    return "error" not in line


def _child(name: str, device: str) -> None:
    sys.exit(0 if ask(name, device) else 1)


def ask_all(device: str, seconds: float) -> int:
    """Every probe in a forked process; what crashed, hung or found no time left gets its line from here.

    Forked, so that PyTorch is imported once; nothing has touched the device before.
    """
    if device == "cuda":
        import torch  # noqa: F401
    fork = multiprocessing.get_context("fork")
    until = time.monotonic() + seconds
    unanswered = 0
    for name in PROBES:
        limit = min(PROBE_SECONDS, until - time.monotonic())
        if limit < 3:
            print(json.dumps({**head(name, device), "error": "not asked: no time left"}), flush=True)
            unanswered += 1
            continue
        process = fork.Process(target=_child, args=(name, device))
        process.start()
        process.join(limit)
        if process.exitcode is None:
            process.kill()
            process.join()
            error = f"hung: killed after {limit:.0f} s"
        elif process.exitcode < 0:
            error = f"crashed: signal {-process.exitcode}"
        else:
            unanswered += process.exitcode
            continue
        unanswered += 1
        print(json.dumps({**head(name, device), "error": error}), flush=True)
    return unanswered


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", nargs="?", choices=PROBES)
    parser.add_argument("--all", action="store_true", help="every question")
    parser.add_argument("--device", choices=("cuda", "sim"), default="sim")
    parser.add_argument("--seconds", type=float, default=180, help="with --all: for all of them")
    options = parser.parse_args()
    if options.all:
        ask_all(options.device, options.seconds)
        return 0  # a question that the hardware answers with a crash is answered
    if options.name:
        return 0 if ask(options.name, options.device) else 1
    for name, probe in PROBES.items():
        print(f"{name:34} {question(probe)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
