"""Where in the Python program work was launched: the frames of its stacks (``profile(sources="stacks")``, "lines")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cuptiprof.data.tables import Table


class Frame(NamedTuple):
    """One frame of a stack.

    Attributes:
        file: file the code says it is from.
        function: its qualified name (Python 3.10: its name).
        line: where it was; 0: the code has no line there.
        first_line: where the function begins.
        is_user: not of an installed package.
    """

    file: str
    function: str
    line: int
    first_line: int
    is_user: bool


class PythonStacks:
    """The stacks of a run (of its table ``stacks``) by their number in ``kernels.stack``."""

    def __init__(self, table: Table) -> None:
        strings = table.strings
        self._frames: dict[int, tuple[int, Frame]] = {}
        columns = (
            table.codes(c).tolist() for c in ("id", "parent", "file", "function", "line", "first_line", "is_user")
        )
        for key, parent, file, function, line, first_line, is_user in zip(*columns, strict=True):
            self._frames[key] = parent, Frame(strings[file], strings[function], line, first_line, bool(is_user))

    def __len__(self) -> int:
        return len(self._frames)

    def frames(self, stack: int) -> list[Frame]:
        """Frames of a stack, the innermost first; none of 0, nor of a stack whose rows were lost."""
        return list(self._walk(stack))

    def places(self, stack: int) -> list[tuple[str, str, int]]:
        """(file, function, line) of the frames."""
        return [frame[:3] for frame in self._walk(stack)]

    def _walk(self, stack: int) -> Iterator[Frame]:
        # Callers have lower numbers than what they call: in a file that says otherwise the walk ends.
        while stack in self._frames:
            caller, frame = self._frames[stack]
            yield frame
            if caller >= stack:
                return
            stack = caller
