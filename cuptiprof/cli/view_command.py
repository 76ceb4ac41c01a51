"""Look at a run in the browser: the HTML report, or with ``--perfetto`` its timeline in Perfetto's UI.

Both are served from this machine to this machine, without a network, until Ctrl-C.
"""

from __future__ import annotations

import argparse
import html
import os
import signal
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from cuptiprof.cli.loopback_server import Content, LoopbackServer
from cuptiprof.cli.perfetto_ui import perfetto_ui
from cuptiprof.cli.standard_streams import progress_bar, write
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.io.rank_folder import open_ranks
from cuptiprof.report.views.by_rank import rank_of

SUMMARY = "Look at a run in the browser, served from this machine to this machine."
EXAMPLES = """examples:
  cuptiprof view run.cuptiprof
  cuptiprof view before.cuptiprof after.cuptiprof
  cuptiprof view trace.json.gz --perfetto
Ctrl-C ends it.
"""
_TRACE = "run.pftrace"
# The page has its own policy, which lets nothing in but its own scripts by their hashes; here is what only a header can say.
_PAGE_POLICY = "frame-ancestors 'none'; connect-src 'none'; object-src 'none'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="RUN_OR_TRACE", help="a saved run, a trace, or a folder with one of each rank")
    parser.add_argument("other", nargs="?", metavar="RUN2", help="another, beside it")
    parser.add_argument(
        "--perfetto", action="store_true", help="its timeline in Perfetto's UI (pip install 'cuptiprof[perfetto]')"
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address")


def main(arguments: argparse.Namespace) -> int:
    with _terminated_as_interrupted(), tempfile.TemporaryDirectory(prefix="cuptiprof-view-") as folder:
        try:
            contents, more = _contents(arguments, Path(folder))
            with LoopbackServer(contents) as server:
                address = server.url + more.format(url=server.url)
                write(sys.stdout, f"{address}\nCtrl-C ends it.\n")
                if not arguments.no_browser:
                    _open_browser(address, Path(folder))
                server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            write(sys.stdout, "\n")
    return 0


def _contents(arguments: argparse.Namespace, folder: Path) -> tuple[dict[str, Content], str]:
    """What is served, and what the address ends with."""
    paths = [arguments.path, *([arguments.other] if arguments.other is not None else [])]
    if arguments.perfetto:
        ui = perfetto_ui()  # before a long reading
        runs = _opened(paths)
        if len(runs) > 1:
            raise ResultError("--perfetto shows one run", hint=f"there are: {', '.join(run.name for run in runs)}")
        trace = folder / _TRACE
        with progress_bar(f"writing {_TRACE}") as progress:
            runs[0].result.export(str(trace), progress=progress)
        content = Content(trace, "application/octet-stream", "default-src 'none'")
        return {**ui, _TRACE: content}, f"#!/?url={{url}}{_TRACE}"
    from cuptiprof.page import PageRun, make_page  # with jinja2: not for every command
    from cuptiprof.page.compared_runs import differences

    runs = _opened(paths)
    two = len(paths) == len(runs) == 2
    differing = differences(runs[0].result, runs[1].result, (runs[0].name, runs[1].name)) if two else []
    text = make_page([PageRun(run.name, run.result) for run in runs], differing)
    return {"": Content(text.encode(errors="backslashreplace"), "text/html; charset=utf-8", _PAGE_POLICY)}, ""


class _Opened(NamedTuple):
    name: str
    result: Result


def _opened(paths: list[str]) -> list[_Opened]:
    runs = []
    for path in paths:
        results: list[Result] = open_ranks(path, lambda file: progress_bar(f"reading {file}"))
        name = os.path.basename(os.path.normpath(path))
        runs += [_Opened(f"{name}, rank {rank_of(r)}" if len(results) > 1 else name, r) for r in results]
    return runs


def _open_browser(address: str, folder: Path) -> None:
    """By a file that leads there: what a program was started with, and so the secret, everybody on the machine can read."""
    way = folder / "open.html"
    with open(os.open(way, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={html.escape(address, quote=True)}">')
    try:
        opened = webbrowser.open(way.as_uri())
    except (OSError, webbrowser.Error):
        opened = False
    if not opened and sys.stderr is not None:
        print("cuptiprof: no browser could be opened: open the address above", file=sys.stderr)


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM ends it as Ctrl-C does, so that nothing is left behind."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
