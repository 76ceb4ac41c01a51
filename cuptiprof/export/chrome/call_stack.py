"""Where in the Python program a slice of the GPU was launched, as torch.profiler says it of operators."""

from __future__ import annotations

import json

from cuptiprof.data.codes import renumbered
from cuptiprof.data.result import Result
from cuptiprof.data.tables import Array, Table


def stack_members(result: Result, table: Table) -> tuple[Array, list[str]]:
    """The member of ``args`` with a comma before it, by code, and the codes of the rows; empty where no Python code is known to
    have launched the work."""
    stacks = result.python_stacks()
    used, which = renumbered(table.codes("stack"))
    texts = []
    for stack in used.tolist():
        lines = [f"{f.file}({f.line}): {f.function}" for f in stacks.frames(stack)] if stack else []
        texts.append(f',"Call stack":{json.dumps(";".join(lines))}' if lines else "")
    return which, texts
