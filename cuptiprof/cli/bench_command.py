"""Run the benchmarks of a Python file over their parameters, or show and compare stored results.

FILE.py[::NAME] is run; any other file is read as results of `--json`, a folder of them as times by commit. Exit status: 0 all is well, 1 a point failed or is slower,
2 it could not begin, 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from typing import Any

from cuptiprof.bench.measure import CLOCK_NAMES, L2_STATES
from cuptiprof.bench.plots.over_parameter import QUANTITIES
from cuptiprof.bench.results.baseline import compare_results
from cuptiprof.bench.results.comparison_table import comparison_report
from cuptiprof.bench.results.gate import Decision, MeasureAgain, decide_gate
from cuptiprof.bench.results.history import History, gather
from cuptiprof.bench.results.store import MAX_PROCESSES, Results, pool, read_results
from cuptiprof.bench.results.trends import find_trends
from cuptiprof.bench.sampling import STRATEGIES
from cuptiprof.bench.sweep import selection
from cuptiprof.bench.sweep.discover import find_benchmarks
from cuptiprof.bench.sweep.given_values import parse_values, with_values
from cuptiprof.bench.sweep.running import tasks_of
from cuptiprof.cli.argument_types import count, percent, seconds
from cuptiprof.cli.bench_progress import describe
from cuptiprof.cli.bench_sweep import Sweep, overrides, say
from cuptiprof.errors import BenchError, CuptiprofError, DeviceError, MetricError, ResultError
from cuptiprof.io.files import check_file
from cuptiprof.pictures.canvas import FORMATS as PLOT_FORMATS
from cuptiprof.pictures.canvas import check_format, load_matplotlib
from cuptiprof.report.model import Report
from cuptiprof.report.render import render_for
from cuptiprof.stats.change_points import ALPHA
from cuptiprof.stats.verdict import THRESHOLD
from cuptiprof.text.nearest import did_you_mean
from cuptiprof.text.units import UNITS

SUMMARY = "Run the benchmarks of a Python file over their parameters, or show and compare stored results."
EXAMPLES = """examples:
  cuptiprof bench bench_attention.py
  cuptiprof bench bench_attention.py::forward --filter 'n>=1024,dtype=bfloat16' --metrics achieved_occupancy,dram_throughput
  cuptiprof bench bench_attention.py -p tokens=4096,8192 -p dtype=bfloat16
  cuptiprof bench bench_attention.py --json new.jsonl --baseline main.jsonl --fail-if-slower 5%
  cuptiprof bench bench_attention.py --json new.jsonl --resume            (goes on after an interruption)
  cuptiprof bench new.jsonl --baseline main.jsonl --format markdown      (compares stored results)
  cuptiprof bench bench_attention.py --processes 20 --json new.jsonl --baseline main.jsonl --fail-if-slower 5%
  cuptiprof bench new-*.jsonl --baseline main-1.jsonl --baseline main-2.jsonl    (several processes a side)
  cuptiprof bench new.jsonl --plot times.svg --x n --roofline roofline.svg --histograms samples.png
  cuptiprof bench bench_attention.py --json history/      (a folder: a file for each run)
  cuptiprof bench history/ --plot trend.svg               (times by commit, and the steps in them)"""

INTERRUPTED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target",
        nargs="+",
        metavar="FILE",
        help="FILE.py[::NAME] to run, or results; several files of results are several processes; a folder of them is a history",
    )
    what = parser.add_argument_group("what to measure")
    what.add_argument(
        "--filter", action="append", metavar="EXPR", help="points, such as 'n>=512,dtype=float16|float32'"
    )
    what.add_argument(
        "-p",
        "--param",
        action="append",
        default=[],
        metavar="NAME=V[,V]",
        help="values of a parameter in place of the benchmark's",
    )
    what.add_argument("--list", action="store_true", help="name the points and stop")
    what.add_argument("--resume", action="store_true", help="skip the points that --json has already")
    how = parser.add_argument_group("how to measure")
    how.add_argument(
        "--processes",
        type=_processes,
        default=1,
        metavar="N",
        help="measure all points in N new processes, one after the other: intervals then know what differs between them",
    )
    how.add_argument("--device", metavar="DEVICE", help="cuda (default), sim, sim:CHIP, host (functions without a GPU)")
    how.add_argument("--metrics", metavar="LIST", help="counters to read after timing, comma-separated")
    how.add_argument(
        "--strategy",
        choices=list(STRATEGIES),
        help="what is timed (default: as the benchmark says, or kernel, or cpu for --device host)",
    )
    how.add_argument("--l2", choices=L2_STATES, help="state of the L2 cache before each call")
    how.add_argument(
        "--lock-clocks", type=_clock, metavar="CLOCK", help="lock the SM clock meanwhile: base, max or MHz; takes root"
    )
    how.add_argument("--energy", action="store_true", help="also measure the energy of a call (NVML)")
    how.add_argument(
        "--memory", action="store_true", help="also measure what a call allocates at its highest (PyTorch)"
    )
    how.add_argument("--time", type=seconds, metavar="S", help="seconds of measuring a point, at most")
    how.add_argument("--timeout", type=seconds, metavar="S", default=600.0, help="seconds a point may take in all (default 600)")  # fmt: skip
    out = parser.add_argument_group("results")
    out.add_argument(
        "--json",
        metavar="OUT",
        help="write each point there as soon as it is measured, as a JSON line; into a folder: a file a run",
    )
    out.add_argument("-f", "--force-overwrite", action="store_true", help="replace existing results")
    out.add_argument("--format", choices=("table", "markdown", "csv", "json"), default="table")
    out.add_argument(
        "-u", "--normalized-time-unit", dest="units", choices=UNITS, default="auto", help="unit of all times"
    )
    out.add_argument("--html", metavar="PAGE", help="write tables and pictures as one HTML file")
    pictures = parser.add_argument_group("pictures", f"({', '.join(PLOT_FORMATS)})")
    pictures.add_argument("--plot", metavar="PICTURE", help="draw --y over --x; of a folder, times over runs")
    pictures.add_argument("--x", metavar="PARAM", help="parameter of the plot's x axis")
    pictures.add_argument(
        "--y", choices=list(QUANTITIES), help="the plot's y axis: the time (default), or operations or bytes a second"
    )
    pictures.add_argument("--histograms", metavar="PICTURE", help="draw the samples of each point")
    pictures.add_argument("--roofline", metavar="PICTURE", help="draw the points under the roofs of the chip")
    against = parser.add_argument_group("comparing")
    against.add_argument(
        "--baseline",
        metavar="RESULTS",
        action="append",
        help="judge each point against these results; may be given once a process",
    )
    against.add_argument("--threshold", type=percent, default=THRESHOLD, metavar="P%%", help=f"difference that does not matter (default {100 * THRESHOLD:g}%%)")  # fmt: skip
    against.add_argument("--in-cycles", action="store_true", help="judge time x SM clock, so that clocks that differ are no difference")  # fmt: skip
    against.add_argument("--fail-if-slower", type=percent, metavar="P%%", help="exit status 1 if a point is SLOWER and its whole interval is at or above P%%")  # fmt: skip
    against.add_argument("--across-chips", action="store_true", help="judge times of different chips too")


def main(arguments: argparse.Namespace) -> int:
    _check(arguments)
    try:
        baseline = pool([read_results(b) for b in arguments.baseline]) if arguments.baseline else None
        conditions = [c for e in arguments.filter or () for c in selection.parse(e)]
        if os.path.isdir(arguments.target[0]):
            return _show_history(arguments, conditions)
        if not arguments.target[0].partition("::")[0].endswith(".py"):
            return _show(arguments, pool([read_results(t) for t in arguments.target]), baseline, conditions)
        with contextlib.redirect_stdout(sys.stderr):  # what the file prints is no part of the table
            benchmarks = [b for t in arguments.target for b in find_benchmarks(t)]
        benchmarks = with_values(benchmarks, parse_values(arguments.param))
        tasks = selection.select(tasks_of(benchmarks, overrides(arguments)), conditions, lambda t: t.point.params)
        if arguments.list:
            print("\n".join(task.title for task in tasks))
            return 0
        _check_pictures(arguments, {name for task in tasks for name in task.point.params})
        sweep = Sweep(arguments, tasks)
    except (BenchError, DeviceError, MetricError, ResultError) as e:
        print(f"cuptiprof: {e}", file=sys.stderr)
        return 2
    return _run(arguments, sweep, baseline)


def _run(arguments: argparse.Namespace, sweep: Sweep, baseline: Results | None) -> int:
    """Measure, print; returns the exit status."""
    end = sweep.run()
    if end.error is not None and not sweep.begun:
        say(str(end.error))
        return 2
    results = sweep.results()
    if end.error is None and not end.interrupted:
        return _report(arguments, results, baseline, sweep.measure_again)
    _report(arguments, results, baseline, None)
    if end.error is not None:
        say(str(end.error))
    say(f"{'interrupted' if end.interrupted else 'ended'} {sweep.how_far()}. {sweep.how_to_go_on()}")
    return INTERRUPTED if end.interrupted else 1


def _show(arguments: argparse.Namespace, results: Results, baseline: Results | None, conditions: Any) -> int:
    """Of a file of results."""
    rows = selection.select(results.rows, conditions, lambda row: row.params)
    if arguments.list:
        print("\n".join(describe(row) for row in rows))
        return 0
    _check_pictures(arguments, {name for row in rows for name in row.params})
    return _report(arguments, Results(tuple(rows), results.environment, results.notes), baseline, None)


def _show_history(arguments: argparse.Namespace, conditions: Any) -> int:
    """Of a folder of results."""
    points, notes = gather(arguments.target[0])
    points = selection.select(points, conditions, lambda point: point.params)
    if arguments.list:
        print("\n".join(f"{p.title}: {len(p.readings)} runs" for p in points))
        return 0
    if arguments.plot:
        load_matplotlib()
        check_format(arguments.plot)
    history = History(tuple(find_trends(points, arguments.threshold, ALPHA)), tuple(notes))
    form = None if arguments.format == "table" else arguments.format
    sys.stdout.write(render_for(history.report(units=arguments.units), sys.stdout, form))
    sys.stdout.flush()
    if arguments.plot:
        history.plot(arguments.plot)
    return 0


def _report(
    arguments: argparse.Namespace, results: Results, baseline: Results | None, measure_again: MeasureAgain | None
) -> int:
    """Decide whether the run fails, print the tables, draw the pictures; returns the exit status.

    Args:
        measure_again: see ``decide_gate``.
    """
    reports = [results.report(units=arguments.units)]
    decision, limit = None, arguments.fail_if_slower
    if baseline is not None:
        how: Any = {
            "threshold": arguments.threshold,
            "across_chips": arguments.across_chips,
            "cycles": arguments.in_cycles,
        }
        try:
            if limit is not None:
                decision = decide_gate(baseline, results, limit, measure_again, **how)
        except KeyboardInterrupt:
            say("interrupted while points were measured again that are slower than the baseline: nothing is decided")
            return INTERRUPTED
        except CuptiprofError as e:  # then the first verdict is the only one
            say(f"slower points could not be measured again: {e}")
            decision = decide_gate(baseline, results, limit, None, **how)
        comparison = decision.comparison if decision is not None else compare_results(baseline, results, **how)
        report = comparison_report(comparison, results.environment, units=arguments.units)
        # CSV and JSON are one document each: that of the comparison, which has the times as well.
        reports = [report] if arguments.format in ("csv", "json") else [*reports, report]
    form = None if arguments.format == "table" else arguments.format
    sys.stdout.write("\n".join(render_for(r, sys.stdout, form) for r in reports))
    sys.stdout.flush()
    failed = sum(row.failed for row in results.rows)
    if failed:
        say(f"{failed} of {len(results)} points failed")
    failing = decision is not None and _fails(decision, limit)
    drawn = _draw(arguments, results, reports[-1] if baseline is not None else None)
    return 1 if failed or failing or not drawn else 0


def _fails(decision: Decision, limit: float) -> bool:
    for line in decision.lines(limit):
        say(line)
    # Also what cannot be judged is no pass: a gate that compares nothing would always be open.
    if not any(p.verdict is not None for p in decision.comparison.points):
        say("--fail-if-slower: no point could be judged against the baseline")
        return True
    return bool(decision.failing)


def _draw(arguments: argparse.Namespace, results: Results, against: Report | None) -> bool:
    """The pictures and the page that were asked for; whether there are all of them."""
    done = True
    wanted = (
        (arguments.plot, lambda path: results.plot(path, arguments.x, arguments.y or "time")),
        (arguments.histograms, results.plot_histograms),
        (arguments.roofline, results.plot_roofline),
        (arguments.html, lambda path: results.save_html(path, against=against)),
    )
    for path, draw in wanted:
        if path:
            try:
                draw(path)
            except CuptiprofError as e:
                say(str(e))
                done = False
    return done


def _check(a: argparse.Namespace) -> None:
    """What argparse cannot know; ends with status 2."""
    folder = os.path.isdir(a.target[0])
    wrong: list[tuple[bool, str]] = [
        (bool(a.plot) != bool(a.x) and not folder, "--plot and --x go together"),
        (bool(a.y) and not a.plot, "--y needs --plot"),
        (a.fail_if_slower is not None and not a.baseline, "--fail-if-slower needs --baseline"),
        (a.across_chips and not a.baseline, "--across-chips needs --baseline"),
        (a.in_cycles and not a.baseline, "--in-cycles needs --baseline"),
        (
            a.threshold != THRESHOLD and not (a.baseline or folder),
            "--threshold needs --baseline, or a folder of results",
        ),
        (a.force_overwrite and not a.json, "--force-overwrite needs --json"),
        (a.resume and not a.json, "--resume needs --json"),
        (a.resume and a.force_overwrite, "--resume and --force-overwrite exclude each other"),
        (a.resume and a.json and os.path.isdir(a.json), f"--resume goes on with a file: which of those in {a.json}?"),
    ]
    if folder:
        wrong.append((len(a.target) > 1, f"{a.target[0]} is a folder of results: it is shown alone"))
        of_one = ("x", "y", "histograms", "roofline", "html", "baseline")
        wrong += [(bool(getattr(a, o)), f"{a.target[0]} is a folder of results: --{o} is of one") for o in of_one]
    stored = [t for t in a.target if not t.partition("::")[0].endswith(".py")]
    measuring = (
        "param",
        "device",
        "metrics",
        "strategy",
        "l2",
        "lock_clocks",
        "energy",
        "memory",
        "time",
        "json",
        "resume",
    )
    if stored:
        wrong.append((a.processes > 1, f"{stored[0]} is read, not measured: --processes does not fit"))
        wrong.append(
            (len(stored) < len(a.target), f"{stored[0]} is a file of results: it is not shown while others are run")
        )
        wrong += [
            (bool(getattr(a, o)), f"{stored[0]} is read, not measured: --{o.replace('_', '-')} does not fit")
            for o in measuring
        ]
    for is_wrong, message in wrong:
        if is_wrong:
            a.parser.error(message)


def _check_pictures(arguments: argparse.Namespace, names: set[str]) -> None:
    """What would be a pity to learn after an hour of measuring."""
    pictures = [p for p in (arguments.plot, arguments.histograms, arguments.roofline) if p]
    if pictures:
        load_matplotlib()
    for path in pictures:
        check_format(path)
    for path in [*pictures, *([arguments.html] if arguments.html else [])]:
        check_file(path, overwrite=True)
    if arguments.plot and arguments.x not in names:
        raise BenchError(f"--x: no parameter {arguments.x!r}{did_you_mean(arguments.x, names)}")


def _clock(text: str) -> str | int:
    if text in CLOCK_NAMES:
        return text
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no clock: base, max or MHz")
    return int(text)


def _processes(text: str) -> int:
    """A number of processes."""
    number = count(text)
    if not 1 <= number <= MAX_PROCESSES:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes")
    return number
