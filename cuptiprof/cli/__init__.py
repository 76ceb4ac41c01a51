"""The command line: ``cuptiprof demo | run | top | report | view | advise | diff | job | export | metrics | dashboard | bench | doctor | verify``. One file a command."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import NoReturn

from cuptiprof.cli.standard_streams import tolerate
from cuptiprof.errors import CuptiprofError
from cuptiprof.text.nearest import did_you_mean
from cuptiprof.version import __version__

COMMANDS = (
    "demo",
    "run",
    "top",
    "report",
    "view",
    "advise",
    "diff",
    "job",
    "export",
    "metrics",
    "dashboard",
    "bench",
    "doctor",
    "verify",
)
"""Each is a module here, ``NAME_command``, with SUMMARY, EXAMPLES, add_arguments and main."""


class Parser(argparse.ArgumentParser):
    """argparse with what may have been meant in its complaint: the nearest option, or the nearest of an option's choices."""

    def error(self, message: str) -> NoReturn:
        wrong = re.match(r"argument (.+?): invalid choice: '([^']*)'", message)
        if wrong:
            message += did_you_mean(wrong[2], self._choices(wrong[1]))
        elif message.startswith("unrecognized arguments:"):
            unknown = next((word for word in message.split() if word.startswith("-")), "")
            message += did_you_mean(unknown.split("=")[0], self._option_string_actions)
        self.exit(2, f"{self.prog}: error: {message}\nTry '{self.prog} --help'.\n")

    def _choices(self, name: str) -> Iterable[str]:
        """Of the argument that a complaint calls `name`."""
        for action in self._actions:
            if name in ("/".join(action.option_strings), action.metavar, action.dest):
                return list(action.choices or ())
        return ()


def make_parser(names: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of these commands. Only their modules are imported: a script that ``run`` starts does not wait for the others."""
    parser = Parser(
        prog="cuptiprof",
        description="The GPU profiler that lives inside your Python process.",
        epilog="examples:\n  cuptiprof demo\n  cuptiprof run train.py --epochs 1\n  cuptiprof report run_command.cuptiprof --view regions",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"cuptiprof {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    for name in names:
        module = import_module(f"cuptiprof.cli.{name}_command")
        sub = commands.add_parser(
            name,
            help=module.SUMMARY.rstrip("."),
            description=module.SUMMARY,
            epilog=module.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add_arguments(sub)
        sub.set_defaults(function=module.main, parser=sub)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status.

    Args:
        argv: None: those of the process, which is ours then: a script that is run finds it as it would without us.
    """
    words = sys.argv[1:] if argv is None else argv
    parser = make_parser(words[:1] if words and words[0] in COMMANDS else COMMANDS)
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        arguments.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    arguments.own_process = argv is None
    if arguments.command != "run":  # whose script has standard output as it finds it
        tolerate(sys.stdout)
    try:
        return int(arguments.function(arguments))
    except CuptiprofError as e:
        print(f"cuptiprof: {e}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `cuptiprof report ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
