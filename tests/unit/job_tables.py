"""Tables of a generated job for DuckDB, without files."""

from __future__ import annotations

from typing import Any

import ibis
import numpy as np
import pyarrow as pa

from benchmarks.generated_job import GeneratedJob
from cuptiprof.job.engines import columns_of, empty_table


def tables_of(job: GeneratedJob) -> dict[str, Any]:
    runs = job.run()
    out = {"regions": empty_table("regions")}
    for name in runs[0]:
        columns = {c: np.concatenate([np.asarray(run[name][c]) for run in runs]) for c in runs[0][name]}
        columns["rank"] = np.repeat(np.arange(len(runs)), [len(run[name]["start"]) for run in runs])
        out[name] = columns_of(ibis.memtable(pa.table(columns)), name)
    return out
