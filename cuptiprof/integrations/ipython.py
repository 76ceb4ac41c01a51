"""IPython and Jupyter: ``%load_ext cuptiprof``, then ``%%cuptiprof`` and ``%cuptiprof``. See docs/integrations.md."""

from __future__ import annotations

import argparse
import asyncio
import keyword
import re
import shlex
from typing import Any, NoReturn

from cuptiprof.cli.metric_arguments import add_counter_arguments
from cuptiprof.cli.output import add_view_arguments
from cuptiprof.cli.run_session import RunSession
from cuptiprof.cli.session_arguments import add_kernel_arguments, add_session_arguments, chosen_views
from cuptiprof.data.result import Result
from cuptiprof.errors import CuptiprofError
from cuptiprof.integrations.framed_page import FramedPage

try:
    from IPython.core.error import UsageError
    from IPython.core.magic import no_var_expand
    from IPython.display import display
except ModuleNotFoundError as missing:
    raise CuptiprofError(f"there is no IPython: {missing}", hint="pip install ipython") from None

_NAME = "cuptiprof"
_TOKEN = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|[^\s"'])+)(?=\s|$)""")


def load_ipython_extension(shell: Any) -> None:
    """What ``%load_ext`` calls."""

    def magic(line: str, cell: str | None = None) -> None:
        profile_cell(shell, line, cell)

    magic.__doc__ = _parser().format_help()
    shell.register_magic_function(no_var_expand(magic), "line_cell", _NAME)


def unload_ipython_extension(shell: Any) -> None:
    """What ``%unload_ext`` calls."""
    for magics in shell.magics_manager.magics.values():
        magics.pop(_NAME, None)


class CellError(Exception):
    """The cell inside ``%%cuptiprof`` failed, and has shown its own traceback: nothing more is shown, and what comes after does not run."""

    def _render_traceback_(self) -> list[str]:
        return []


def profile_cell(shell: Any, line: str, cell: str | None) -> None:
    """Run the cell, or the statement that follows the options in the line, in a session, and show what it collected.

    Raises:
        UsageError: of IPython's: an option, a device or a session that cannot be; nothing has run then. CellError: the code failed.
    """
    parser = _parser()
    words, statement = split_options(line, parser)
    if not words and not statement and cell is None:
        raise UsageError(
            f"%{_NAME} [options] STATEMENT, or %%{_NAME} [options] above a cell; %{_NAME}? shows the options"
        )
    try:
        arguments = parser.parse_args(words)
    except _HelpShown:
        return
    if cell is not None and statement:
        raise UsageError(f"{statement!r}: the code comes below %%{_NAME}, only options beside it")
    code = cell if cell is not None else statement
    if not code.strip():
        raise UsageError("there is nothing to run")
    if _cannot_await(shell, code):
        raise UsageError(
            "a cell that awaits cannot run inside of another one here\n  hint: `with cuptiprof.profile() as prof:` around the await"
        )
    try:
        session = RunSession(arguments)
        session.start()
    except CuptiprofError as e:
        raise UsageError(str(e)) from None
    try:
        done = shell.run_cell(code, store_history=False)
    finally:
        result = _stopped(session, arguments)
        if arguments.output:
            shell.user_ns[arguments.output] = result
    if not arguments.quiet:
        options = {"units": arguments.units, "demangle": arguments.demangling == "on", "limit": arguments.limit}
        for view in chosen_views(arguments):
            display(result.report(view, **options))
        if arguments.page:
            display(FramedPage(result))
    error = done.error_before_exec or done.error_in_exec
    if error is not None:
        raise CellError(f"{type(error).__name__}: {error}")


def _cannot_await(shell: Any, code: str) -> bool:
    """It has an ``await`` outside of a function, and the shell's event loop runs already, as Jupyter's does."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return bool(shell.should_run_async(code, transformed_cell=shell.transform_cell(code)))


def _stopped(session: RunSession, arguments: argparse.Namespace) -> Result:
    try:
        return session.stop(quiet=arguments.quiet)
    except KeyboardInterrupt:
        return session.stop(quiet=arguments.quiet)  # nothing of it is lost


class _HelpShown(Exception):
    """``--help`` was asked for."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise _HelpShown


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        description="Profile a cell; as %cuptiprof [options] STATEMENT a statement. The options are those of `cuptiprof run`.",
        usage=f"%%%%{_NAME} [options]",
        allow_abbrev=False,
    )
    parser.add_argument("-o", "--output", metavar="NAME", type=_variable, help="keep the result in a variable")
    parser.add_argument("-q", "--quiet", action="store_true", help="show no report")
    parser.add_argument("--page", action="store_true", help="show the HTML report below the reports, too")
    add_session_arguments(parser)
    add_kernel_arguments(parser)
    add_counter_arguments(parser, of_script=False)
    add_view_arguments(parser.add_argument_group("what to show"))
    # Of a script only.
    parser.set_defaults(timeout=None, module=False, script="", live=False)
    return parser


def _variable(text: str) -> str:
    if not text.isidentifier() or keyword.iskeyword(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a variable")
    return text


def split_options(line: str, parser: argparse.ArgumentParser) -> tuple[list[str], str]:
    """The options that a line begins with, without their quotes, and the statement after them, as it was typed.

    The statement begins with the first word that is neither an option nor its value; after ``--`` in any case.
    """
    words: list[str] = []
    rest = line.strip()
    while (found := _TOKEN.match(rest)) and found[1].startswith("-"):
        rest = rest[found.end() :]
        if found[1] == "--":
            break
        words.append(found[1])
        if _takes_value(found[1], parser) and (value := _TOKEN.match(rest)):
            words.append(value[1])
            rest = rest[value.end() :]
    return ["".join(shlex.split(word)) for word in words], rest.strip()


def _takes_value(word: str, parser: argparse.ArgumentParser) -> bool:
    options = parser._option_string_actions
    if word not in options:
        return False  # --option=value, -kNAME, or none of ours: the parser says so
    return options[word].nargs != 0
