"""What a view is, and what all of them can be asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from cuptiprof.report.model import TableModel
    from cuptiprof.result import Result


@dataclass(frozen=True)
class Options:
    """Wishes that views heed where they make sense for them.

    Attributes:
        limit: at most so many rows (of each block); None: all.
        demangling: show kernel names demangled.
        per_gpu: a block for each GPU instead of one for all.
        sort_by: sort key, where a view offers several; empty: its own order.
    """

    limit: int | None = None
    demangling: bool = True
    per_gpu: bool = False
    sort_by: str = ""


class View(Protocol):
    """One report: a name for the command line, a line of help, and the table."""

    @property
    def name(self) -> str: ...

    @property
    def help(self) -> str: ...

    def build(self, result: Result, options: Options) -> TableModel: ...


def left_out(total: int, shown: int, what: str = "rows") -> tuple[str, ...]:
    """The line that says that a limit cut something off."""
    return (f"({total - shown} more {what} not shown)",) if shown < total else ()
