"""Watch a session that runs in another process: kernels, regions, GPU use and losses, once a second.

The program was started with ``cuptiprof run --live-remote``, or has a session of ``cuptiprof.profile(live=True)``. Ctrl-C ends the
watching, not the program.
"""

from __future__ import annotations

import argparse
import os
import sys

from cuptiprof.cli.live_layout import live_lines, one_line
from cuptiprof.cli.standard_streams import write
from cuptiprof.watch.live_figures import LiveFigures
from cuptiprof.watch.live_watcher import LiveWatcher, the_only_one

SUMMARY = "Watch a session that runs in another process."
EXAMPLES = """examples:
  cuptiprof run --live-remote train.py     (in one terminal)
  cuptiprof top                            (in another: the only session there is)
  cuptiprof top 12345                      (that of process 12345)
  cuptiprof top | head -3                  (lines, where it is no terminal)
Ctrl-C ends the watching, not the program.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pid", nargs="?", type=_process, metavar="PID", help="the process (default: the only one there is)")  # fmt: skip


def _process(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 11):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of a process")
    return int(text)


def main(arguments: argparse.Namespace) -> int:
    with LiveWatcher(arguments.pid if arguments.pid is not None else the_only_one()) as watcher:
        if not sys.stdout.isatty():
            for figures in watcher:
                write(sys.stdout, f"{one_line(figures)}\n")
            return 0
        last = _watch(watcher)
    if last is not None:  # stays when the other screen has gone
        size = os.get_terminal_size(sys.stdout.fileno())
        write(sys.stdout, "\n".join(line.text for line in live_lines(last, size.columns - 1, size.lines // 2)) + "\n")
    return 0


def _watch(watcher: LiveWatcher) -> LiveFigures | None:
    """Until the session ends, or Ctrl-C. Returns the last numbers."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    console = Console()
    last = None
    try:
        with Live(Text("waiting for the first numbers ..."), console=console, screen=True, auto_refresh=False) as live:
            for last in watcher:
                lines = live_lines(last, console.width, console.height)
                live.update(
                    Group(*(Text(line.text, "bold" if line.is_heading else "", no_wrap=True) for line in lines)),
                    refresh=True,
                )
    except KeyboardInterrupt:
        pass
    return last
