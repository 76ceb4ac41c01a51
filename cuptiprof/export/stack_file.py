"""torch.profiler's ``export_stacks``: time by the Python stack of the operators that took it, for flame graphs."""

from __future__ import annotations

import os
from collections import Counter

from cuptiprof.analysis.arrays.aggregate import sum_by_group
from cuptiprof.analysis.operator_work.operator_stacks import frame_texts, operator_origins
from cuptiprof.analysis.trees.host_tree import HostKind, host_tree
from cuptiprof.data.codes import renumbered
from cuptiprof.data.result import Result
from cuptiprof.errors import ResultError
from cuptiprof.io.files import replacing_file

METRICS = ("self_cpu_time_total", "self_cuda_time_total", "self_device_time_total")
_FRAME = str.maketrans(" ;\t\n\r", "_____")


def export_stacks(result: Result, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
    """One line a stack, ``outermost;...;innermost us``; an existing file is replaced. See :meth:`cuptiprof.Result.export_stacks`.

    Raises:
        ResultError: an unknown metric, no stacks in the run, or it cannot be written.
    """
    if metric not in METRICS:
        raise ResultError(f"unknown metric {metric!r}", hint=f"one of: {', '.join(METRICS)}")
    tree = host_tree(result)
    stacks = operator_origins(result, tree, "stack")
    if not stacks.any():
        raise ResultError(
            "the run has no stacks of operators",
            hint='profile(with_stack=True) of cuptiprof.torch_profiler, or sources=["operators", "stacks"]',
        )
    own = tree.host_self() if metric == "self_cpu_time_total" else tree.device_self(result)
    mine = (tree.kind == HostKind.OPERATOR) & (stacks > 0)
    texts = frame_texts(result, stacks[mine])
    used, which = renumbered(stacks[mine])
    times: Counter[str] = Counter()
    for stack, ns in zip(used.tolist(), sum_by_group(which, own[mine], len(used)).tolist(), strict=True):
        times[";".join(frame.translate(_FRAME) for frame in reversed(texts[stack]))] += ns
    with replacing_file(path, overwrite=True) as temporary, temporary.open("wb") as out:
        for line, ns in times.items():
            if line and ns >= 1000:
                out.write(f"{line} {ns // 1000}\n".encode("utf-8", "backslashreplace"))
