"""Where in the Python program a slice of the GPU was launched, as torch.profiler says it of operators."""

from __future__ import annotations

import json

from cuptiprof.data.result import Result
from cuptiprof.data.tables import Table


class CallStacks:
    """The member of ``args`` by number of the stack, written once a stack."""

    def __init__(self, result: Result) -> None:
        self._stacks = result.python_stacks()
        self._texts: dict[int, str] = {0: ""}

    def texts(self, table: Table, rows: slice) -> list[str]:
        """With a comma before it; empty where no Python code is known to have launched the work."""
        return [self._text(stack) for stack in table.codes("stack")[rows].tolist()]

    def _text(self, stack: int) -> str:
        if stack not in self._texts:
            lines = [f"{f.file}({f.line}): {f.function}" for f in self._stacks.frames(stack)]
            self._texts[stack] = f',"Call stack":{json.dumps(";".join(lines))}' if lines else ""
        return self._texts[stack]
