"""List metrics and events: what they mean, how they are computed, what they cost on which chip.

Needs no GPU: every chip that libcupti knows can be asked about.
"""

from __future__ import annotations

import argparse

from cuptiprof import _core
from cuptiprof.cli.output import print_reports, resolve_log_file
from cuptiprof.data.chips import CHIPS
from cuptiprof.device.planning import planning_library
from cuptiprof.errors import CuptiprofError, MetricError
from cuptiprof.metrics import name_tables, resolve_events, resolve_section, resolve_set, select
from cuptiprof.metrics.catalogue import split_names
from cuptiprof.metrics.library import open_planner
from cuptiprof.metrics.metric import Describe, Metric, Selection
from cuptiprof.metrics.target import check_chip, make_target
from cuptiprof.report.model import Report, View
from cuptiprof.report.render import FORMATS
from cuptiprof.report.views.metric_list import (
    describe_metrics,
    list_base_names,
    list_entries,
    list_presets,
    without_chip,
)

SUMMARY = "List metrics and events: what they mean, how they are computed, what they cost on which chip."
EXAMPLES = (
    "examples:\n  cuptiprof metrics --search dram\n  cuptiprof metrics ipc dram_read_throughput --chip GH100 --passes\n"
    "  cuptiprof metrics memory --chip GB202 --passes\n  cuptiprof metrics --section SpeedOfLight --chip GH100\n"
    "  cuptiprof metrics --base --search tensor --chip GB100"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="metrics, presets, perfworks names; default: list all")
    parser.add_argument(
        "--chip", metavar="CHIP", help="a chip or a product with it, such as GH100 or H100; none need be here"
    )
    parser.add_argument(
        "--passes", action="store_true", help="how often a kernel must run to count them (needs --chip)"
    )
    parser.add_argument(
        "--sampling", action="store_true", help="for PM sampling (--replay-mode sample) instead of ranges"
    )
    parser.add_argument("--search", metavar="WORD", help="only those with the word in name, description or expression")
    parser.add_argument("--set", metavar="SET", help="what an ncu set counts (needs --chip)")
    parser.add_argument("--section", metavar="SECTION", help="what an ncu section, or regex:..., counts (needs --chip)")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--query-metrics", action="store_true", help="as nvprof: metrics (the default)")
    kinds.add_argument("--query-events", action="store_true", help="as nvprof: events")
    kinds.add_argument("--presets", action="store_true", help="names that stand for several metrics")
    kinds.add_argument("--base", action="store_true", help="perfworks base names of the chip (needs --chip)")
    group = parser.add_argument_group("output")
    group.add_argument("--format", choices=FORMATS, default="text", help="default: text, which cuts no name")
    group.add_argument("--csv", dest="format", action="store_const", const="csv", help="the same as --format csv")
    group.add_argument("--log-file", metavar="FILE", help="write there (%%1 stdout, %%2 stderr, %%p pid, %%h host)")


def main(arguments: argparse.Namespace) -> int:
    resolve_log_file(arguments)
    chip: str | None = arguments.chip
    if chip is None and (wants := [o for o in ("passes", "base", "set", "section") if getattr(arguments, o)]):
        raise MetricError(f"--{wants[0]} needs a chip", hint=f"--chip GH100; known: {', '.join(CHIPS)}")
    library = _library(required=arguments.passes or arguments.base)
    if chip is not None:
        chip = arguments.chip = check_chip(chip, _core.metric_chips(library) if library else ())
    planner = open_planner(chip, library, sampling=arguments.sampling) if chip and library else None
    if arguments.base and planner:
        title, view = "Perfworks base names", list_base_names(planner, arguments.search)
    elif arguments.presets:
        title, view = "Presets", list_presets()
    elif arguments.names or arguments.set or arguments.section:
        title, view = "Metrics", _described(arguments, library, planner)
    else:
        entries = name_tables.events() if arguments.query_events else {**name_tables.metrics(), **name_tables.derived()}
        target = None if chip is None else make_target(chip, describe=planner.properties if planner else None)
        title = "Events" if arguments.query_events else "Metrics"
        view = list_entries(entries.values(), target, arguments.search)
    where = f" of {chip}" if chip else ""
    print_reports([Report("metrics", title + where, (), view, {}, "", metadata={"chip": chip})], arguments)
    return 0


def _library(required: bool) -> _core.CuptiLibrary | None:
    try:
        library = planning_library()
        _core.metric_chips(library)
    except CuptiprofError:
        if required:
            raise
        return None
    return library


def _described(
    arguments: argparse.Namespace, library: _core.CuptiLibrary | None, planner: _core.MetricPlanner | None
) -> View:
    """Everything about the metrics that are named, in whichever way."""
    if arguments.chip is None:
        metrics, chips = _without_chip(arguments, library)
        return describe_metrics(metrics, chips)
    describe = planner.properties if planner else None
    selection = _selection(arguments, describe, library)
    return describe_metrics(
        selection.metrics, _chips(selection.metrics), planner if arguments.passes else None, selection.dropped
    )


def _selection(
    arguments: argparse.Namespace, describe: Describe | None, library: _core.CuptiLibrary | None
) -> Selection:
    chip = arguments.chip
    found: list[Selection] = []
    if arguments.set:
        found.append(resolve_set(arguments.set, chip, describe=describe, sampling=arguments.sampling))
    if arguments.section:
        found.append(resolve_section(arguments.section, chip, describe=describe, sampling=arguments.sampling))
    names = ",".join(arguments.names)
    if names and arguments.query_events:
        found.append(Selection(tuple(resolve_events(names, chip, describe=describe))))
    elif names:
        chips_with = None if library is None else lambda name: _core.chips_with_metric(library, name)
        found.append(select(names, chip, describe=describe, chips_with=chips_with))
    metrics = {metric.name: metric for selection in found for metric in selection.metrics}
    dropped = {name: why for selection in found for name, why in selection.dropped.items()}
    return Selection(tuple(metrics.values()), dropped)


def _without_chip(
    arguments: argparse.Namespace, library: _core.CuptiLibrary | None
) -> tuple[list[Metric], dict[str, str]]:
    """Metrics as the catalogue has them; perfworks names as the newest chip that has them does."""
    entries = name_tables.events() if arguments.query_events else {**name_tables.metrics(), **name_tables.derived()}
    metrics: list[Metric] = []
    chips: dict[str, str] = {}
    for name in split_names(",".join(arguments.names)):
        if name in entries:
            metrics.append(without_chip(entries[name]))
        elif arguments.query_events:
            metrics += resolve_events(name, "GH100")
        else:
            holders = _core.chips_with_metric(library, name) if library and "__" in name and "." in name else []
            chips[name] = " ".join(holders)
            chip = holders[-1] if holders else "GH100"
            describe = open_planner(chip, library).properties if library and holders else None
            metrics += select(name, chip, describe=describe).metrics
    return metrics, {**_chips(metrics), **chips}


def _chips(metrics: tuple[Metric, ...] | list[Metric]) -> dict[str, str]:
    entries = {**name_tables.events(), **name_tables.metrics(), **name_tables.derived()}
    return {m.name: " ".join(name_tables.names_of(entries[m.name].chips, CHIPS)) for m in metrics if m.name in entries}
