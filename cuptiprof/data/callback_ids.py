"""Names of CUDA's functions by their CUPTI callback IDs, where no library can be asked."""

from __future__ import annotations

import csv
import functools
from importlib import resources


@functools.lru_cache(maxsize=1)
def callback_names() -> dict[tuple[str, int], str]:
    """("runtime" or "driver", callback ID) -> name without version suffix (``callback_ids.csv``)."""
    text = resources.files("cuptiprof.data").joinpath("callback_ids.csv").read_text(encoding="utf-8")
    return {(row["domain"], int(row["cbid"])): row["name"] for row in csv.DictReader(text.splitlines())}
