"""Where the work of CUDA graphs was captured, in the arguments of its slices."""

from __future__ import annotations

from cuptiprof.data.codes import renumbered
from cuptiprof.data.tables import Table
from cuptiprof.io.chrome.json_text import quoted


def capture_members(table: Table, rows: slice) -> list[str]:
    """Where the work of graph nodes was captured, as JSON members; "" for other work."""
    known = table["capture_known"][rows]
    if not known.any():
        return [""] * len(known)
    used, which = renumbered(table.codes("capture_region")[rows])
    texts = [f',"capture region":{text}' for text in quoted(table.strings[code] for code in used.tolist())]
    return [texts[i] if there else "" for i, there in zip(which.tolist(), known.tolist(), strict=True)]
