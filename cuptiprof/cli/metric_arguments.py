"""Options of ``run`` that ask for hardware counters, with nvprof's and Nsight Compute's names."""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any

from cuptiprof.counters.controls import CACHES, CLOCKS
from cuptiprof.errors import MetricError

# ncu's and nvprof's --replay-mode -> profile(strategy=...).
STRATEGIES = {
    "auto": "auto",
    "kernel": "replay",
    "application": "application",
    "range": "range",
    "iterate": "iterate",
    "sample": "sample",
}


def add_counter_arguments(parser: argparse.ArgumentParser, *, of_script: bool = True) -> None:
    """``--metrics``, ``--events``, ``--set``, ``--section``, ``--replay-mode`` and what belongs to them.

    Args:
        of_script: what is profiled can be run again as a whole.
    """
    group = parser.add_argument_group("hardware counters (nvprof's and ncu's options)")
    group.add_argument(
        "--metrics",
        action="append",
        metavar="LIST",
        help="metrics or presets, comma-separated; `cuptiprof metrics` lists them (-m LIST does the same "
        "unless LIST is a module)",
    )
    group.add_argument("-e", "--events", action="append", metavar="LIST", help="nvprof's events, comma-separated")
    group.add_argument("--analysis-metrics", action="store_true", help="the metrics of nvprof's guided analysis")
    group.add_argument("--set", metavar="SET", help="ncu's sets: basic, detailed, full, roofline, ...")
    group.add_argument("--section", action="append", metavar="SECTION", help="ncu's sections: SpeedOfLight, ...")
    group.add_argument("--replay-mode", choices=[mode for mode in STRATEGIES if of_script or mode != "application"], default="auto",
                       help="how what takes several passes is read (default auto)" + "; application: run the script again" * of_script)  # fmt: skip
    if of_script:
        group.add_argument("--app-replay-match", choices=("name", "grid", "all"), default="grid",
                           help="ncu: what tells the launches of one application run from each other")  # fmt: skip
    group.add_argument("--sampling-interval", "--pm-sampling-interval", metavar="TIME",
                       help="of --replay-mode sample: ns, or with a unit (100us)")  # fmt: skip
    group.add_argument("--cache-control", choices=CACHES,
                       help="ncu: reset the GPU's caches before each pass (default for replay: all, from CUDA 13.4 on)")  # fmt: skip
    group.add_argument("--clock-control", choices=CLOCKS,
                       help="ncu: hold the GPU's clocks while counting (default for replay: base, from CUDA 13.4 on)")  # fmt: skip
    group.add_argument("--explain", action="store_true", help="say what will be counted, how and at what cost, first")


def counter_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Keywords of ``profile()`` for the counters that were asked for; empty if none were.

    Raises:
        MetricError: options of counters without any counter, or an empty list.
    """
    a = arguments
    metrics, events = split_lists(a.metrics, "--metrics"), split_lists(a.events, "--events")
    if a.analysis_metrics:
        metrics.append("analysis")
    sections = a.section or []
    if not (metrics or events or a.set or sections):
        for option, given in (("--replay-mode", a.replay_mode != "auto"), ("--explain", a.explain),
                              ("--sampling-interval", a.sampling_interval is not None),
                              ("--cache-control", a.cache_control), ("--clock-control", a.clock_control)):  # fmt: skip
            if given:
                raise MetricError(f"{option} without metrics", hint="name some: --metrics ipc,achieved_occupancy")
        return {}
    options: dict[str, Any] = {"strategy": STRATEGIES[a.replay_mode]}
    if metrics:
        options["metrics"] = metrics
    if events:
        options["events"] = events
    if a.set:
        options["set"] = a.set
    if sections:
        options["section"] = sections[0] if len(sections) == 1 else sections
    if a.sampling_interval is not None:
        text = a.sampling_interval
        options["sampling_interval"] = int(text) if text.isdecimal() else text
    if a.cache_control:
        options["cache_control"] = a.cache_control
    if a.clock_control:
        options["clock_control"] = a.clock_control
    if a.explain:
        options["explain"] = True
    return options


def counter_views(arguments: argparse.Namespace) -> list[str]:
    """What is printed if no view was asked for: nvprof's tables for metrics and events, pages for ncu's sections."""
    views = ["metrics"] * bool(arguments.metrics or arguments.analysis_metrics)
    views += ["events"] * bool(arguments.events)
    return views + ["sections"] * bool(arguments.set or arguments.section)


def split_lists(given: list[str] | None, option: str) -> list[str]:
    """Names from comma-separated lists, each once, in order.

    Raises:
        MetricError: a list without names.
    """
    names: dict[str, None] = {}
    for text in given or []:
        found = [name.strip() for name in text.split(",") if name.strip()]
        if not found:
            raise MetricError(f"{option} {text!r} names nothing", hint=f"for example {option} ipc,achieved_occupancy")
        names.update(dict.fromkeys(found))
    return list(names)


def take_short_option(arguments: argparse.Namespace) -> argparse.Namespace:
    """``run -m WORD ...`` is Python's "run a module", and nvprof's "count these metrics" where WORD names metrics.

    In the second case what follows is parsed again: it holds the script, and maybe more options. A word that can be
    imported is a module.
    """
    if not arguments.module or not arguments.args or not are_metrics(arguments.script):
        return arguments
    arguments.metrics = [*(arguments.metrics or []), arguments.script]
    arguments.module = False
    rest = arguments.args
    arguments.script, arguments.args = None, []
    again: argparse.Namespace = arguments.parser.parse_args(rest, namespace=arguments)
    return take_short_option(again)


def are_metrics(text: str) -> bool:
    """True if ``text`` is a list of metric names rather than a module."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        return False
    if "," not in text and _is_module(text):
        return False
    from cuptiprof.metrics import name_tables
    from cuptiprof.metrics.perfworks import split_name

    known = (
        name_tables.metrics().keys()
        | name_tables.derived().keys()
        | name_tables.events().keys()
        | name_tables.presets().keys()
        | {"all"}
    )
    return all(name in known or split_name(name) is not None for name in names)


def _is_module(name: str) -> bool:
    top = name.partition(".")[0]
    try:
        here = importlib.machinery.PathFinder.find_spec(top, [os.getcwd()])
        return here is not None or top in sys.modules or importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        return False
