"""GPU time by what ran: computation, communication, memory, and which of them at once."""

from __future__ import annotations

from cuptiprof.analysis.arrays.intervals import time_by_set
from cuptiprof.analysis.utilization.timeline import work_by_kind
from cuptiprof.data.result import Result

_TYPES = {"compute": "COMPUTATION", "communication": "COMMUNICATION", "copying": "MEMORY"}


def kernel_types(result: Result) -> dict[str, int]:
    """Kernel type -> ns, the longest first, added up over the GPUs of a result: HTA's ``get_gpu_kernel_breakdown``, first table.

    Each moment counts for all types that run in it: ``COMPUTATION``, ``COMPUTATION overlapping COMMUNICATION`` and so on.
    Communication is what ``analysis.communication`` knows by name; HTA knows ``nccl...Kernel`` only. A kernel with ``Sync``
    or ``Memcpy`` in its name computes here, in HTA it is of no type.
    """
    total: dict[str, int] = {}
    for work in work_by_kind(result).values():
        for which, time in time_by_set([work[kind] for kind in _TYPES]).items():
            name = " overlapping ".join(label for i, label in enumerate(_TYPES.values()) if which >> i & 1)
            total[name] = total.get(name, 0) + time
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))
