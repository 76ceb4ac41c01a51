"""What the commands share: how reports are asked for, and where they go."""

from __future__ import annotations

import argparse
import os
import re
import socket
import sys
from collections.abc import Callable
from typing import TextIO

from cuptiprof.cli.argument_types import count
from cuptiprof.cli.standard_streams import write
from cuptiprof.errors import ResultError
from cuptiprof.io.files import check_file, replacing_file
from cuptiprof.report import VIEWS, Report
from cuptiprof.report.render import FORMATS, render_for
from cuptiprof.text.addresses import absolute, shown_path
from cuptiprof.text.units import UNITS

PLACEHOLDER = r"%(q\{(\w+)\}|.|$)"
_STREAMS = ("%1", "%2")
_STREAM_OF: dict[str, Callable[[], TextIO | None]] = {"%1": lambda: sys.stdout, "%2": lambda: sys.stderr}


def add_view_arguments(group: argparse._ActionsContainer, *, views: bool = True) -> None:
    """What a report shows, wherever it goes. ``views``: which report may be chosen."""
    if views:
        group.add_argument(
            "--view", action="append", choices=list(VIEWS), help="which report; may be given several times"
        )
    group.add_argument(
        "-u", "--normalized-time-unit", dest="units", choices=UNITS, default="auto", help="unit of all times"
    )
    group.add_argument("--demangling", choices=("on", "off"), default="on", help="show demangled kernel names")
    group.add_argument("--limit", type=count, metavar="N", help="at most N rows a table")


def add_format_arguments(parser: argparse.ArgumentParser, *, views: bool = True, pages: bool = False) -> None:
    """Options of everything that prints a report. ``views``: which report may be chosen; ``pages``: "html" is a format, too."""
    group = parser.add_argument_group("output")
    add_view_arguments(group, views=views)
    group.add_argument(
        "--format",
        choices=(*FORMATS, "html") if pages else FORMATS,
        help=("html: one page with all reports and a timeline; " if pages else "")
        + "default: rich (fits the width) on a terminal or with COLUMNS set, else text (nothing is cut)",
    )
    group.add_argument("--csv", dest="format", action="store_const", const="csv", help="the same as --format csv")
    group.add_argument(
        *(("-o", "--output") if pages else ()),
        "--log-file",
        dest="log_file",
        metavar="FILE",
        help="write the report there (%%1 stdout, %%2 stderr, %%p pid, %%h host, %%q{ENV})",
    )


def expand(text: str) -> str:
    """nvprof's placeholders in a file name: %p, %h, %q{ENV}, %%.

    Raises:
        ResultError: an unknown placeholder, or an environment variable that is not set.
    """

    def replace(match: re.Match[str]) -> str:
        code, variable = match.group(1), match.group(2)
        if code == "p":
            return str(os.getpid())
        if code == "h":
            return socket.gethostname()
        if code == "%":
            return "%"
        if variable is not None:
            value = os.environ.get(variable)
            if value is None:
                raise ResultError(f"{shown_path(text)}: the environment variable {variable} is not set")
            return value.replace("/", "_")
        raise ResultError(f"{shown_path(text)}: unknown placeholder %{code}", hint="known: %p %h %q{ENV} %%")

    return re.sub(PLACEHOLDER, replace, text)


def resolve_log_file(arguments: argparse.Namespace) -> None:
    """Expand ``--log-file`` and check that it can be written, before there is anything to write.

    Raises:
        ResultError: it cannot.
    """
    if arguments.log_file is not None and arguments.log_file not in _STREAMS:
        arguments.log_file = absolute(expand(arguments.log_file))  # the script may change its folder
        check_file(arguments.log_file, overwrite=True)  # as nvprof's


def print_reports(reports: list[Report], arguments: argparse.Namespace, *, default: str = "%1") -> None:
    """Render to stdout, stderr or the log file, which ``resolve_log_file`` has seen."""
    target = arguments.log_file or default
    texts = [render_for(r, _STREAM_OF.get(target, lambda: None)(), arguments.format) for r in reports]
    put_text("\n".join(texts) if arguments.format != "json" or len(texts) == 1 else f"[{','.join(texts)}]\n", target)


def wants_page(arguments: argparse.Namespace) -> bool:
    """An HTML page was asked for, by its format or by the name of the file."""
    return arguments.format == "html" or (arguments.format is None and (arguments.log_file or "").endswith(".html"))


def put_text(joined: str, target: str) -> None:
    """Text to stdout ("%1"), stderr ("%2") or a file.

    Raises:
        ResultError: there is no such stream, or the file cannot be written.
    """
    stream = _STREAM_OF.get(target, lambda: None)()
    if stream is not None:
        write(stream, joined)
        return
    if target in _STREAMS:
        raise ResultError("cannot print: there is no standard output", hint="--log-file FILE writes to a file")
    with replacing_file(target, overwrite=True) as temporary:
        temporary.write_text(joined, encoding="utf-8", errors="backslashreplace")
