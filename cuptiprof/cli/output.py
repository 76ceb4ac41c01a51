"""What the commands share: where reports go, and progress bars."""

from __future__ import annotations

import argparse
import io
import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from cuptiprof.cli.argument_types import count
from cuptiprof.data.result import Progress
from cuptiprof.errors import ResultError
from cuptiprof.io.files import check_file
from cuptiprof.report import VIEWS, Report
from cuptiprof.report.render import FORMATS, render_for
from cuptiprof.text.units import UNITS

PLACEHOLDER = r"%(q\{(\w+)\}|.|$)"
_STREAMS = ("%1", "%2")


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


def add_format_arguments(parser: argparse.ArgumentParser, *, views: bool = True) -> None:
    """Options of everything that prints a report. ``views``: which report may be chosen."""
    group = parser.add_argument_group("output")
    add_view_arguments(group, views=views)
    group.add_argument(
        "--format",
        choices=FORMATS,
        help="default: rich (fits the width) on a terminal or with COLUMNS set, else text (nothing is cut)",
    )
    group.add_argument("--csv", dest="format", action="store_const", const="csv", help="the same as --format csv")
    group.add_argument(
        "--log-file",
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
                raise ResultError(f"{text!r}: the environment variable {variable} is not set")
            return value.replace("/", "_")
        raise ResultError(f"{text!r}: unknown placeholder %{code}", hint="known: %p %h %q{ENV} %%")

    return re.sub(PLACEHOLDER, replace, text)


def resolve_log_file(arguments: argparse.Namespace) -> None:
    """Expand ``--log-file`` and check that it can be written, before there is anything to write.

    Raises:
        ResultError: it cannot.
    """
    if arguments.log_file is not None and arguments.log_file not in _STREAMS:
        arguments.log_file = os.path.abspath(expand(arguments.log_file))  # the script may change its folder
        check_file(arguments.log_file, overwrite=True)  # as nvprof's


def print_reports(reports: list[Report], arguments: argparse.Namespace, *, default: str = "%1") -> None:
    """Render to stdout, stderr or the log file, which ``resolve_log_file`` has seen."""
    target = arguments.log_file or default
    stream = {"%1": sys.stdout, "%2": sys.stderr}.get(target)
    texts = [render_for(r, stream, arguments.format) for r in reports]
    joined = "\n".join(texts) if arguments.format != "json" or len(texts) == 1 else f"[{','.join(texts)}]\n"
    if stream is not None:
        write(stream, joined)
        return
    if target in _STREAMS:
        raise ResultError("cannot print: there is no standard output", hint="--log-file FILE writes to a file")
    try:
        with open(target, "w", encoding="utf-8", errors="backslashreplace") as f:
            f.write(joined)
    except OSError as e:
        raise ResultError(f"cannot write {target}: {e.strerror}") from None


def write(stream: TextIO, text: str) -> None:
    """What the encoding of the stream (an ASCII locale) cannot say is written as \\escapes.

    Raises:
        ResultError: it is closed.
    """
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    except ValueError as e:
        raise ResultError(f"cannot print: {e}", hint="--log-file FILE writes to a file") from None
    stream.flush()


def usable(stream: Any) -> bool:
    """There is one, and it is open."""
    return stream is not None and not getattr(stream, "closed", False)


def tolerate(stream: Any) -> None:
    """From now on a stream writes what its encoding cannot say as \\escapes."""
    if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
        stream.reconfigure(errors="backslashreplace")


@contextmanager
def progress_bar(what: str) -> Iterator[Progress | None]:
    """A progress callback that draws a bar on a terminal; None where there is none."""
    if not usable(sys.stderr) or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
