"""What ``TraceDiff.compare_traces`` of Holistic Trace Analysis 0.5.0 finds between two traces, as JSON: what our diff is compared with.

python trace_diff.py CONTROL TEST > trace_diff.json      (in an environment with HolisticTraceAnalysis==0.5.0)

``tests/data/analyses/trace_diff.json`` is its output; tests/unit/test_diff.py compares ours with that. All steps are asked for, the
device's and the host's work by themselves; times are given as ns (see analyses.py).
"""

from __future__ import annotations

import contextlib
import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from analyses import events
from hta.common.trace import Trace
from hta.trace_diff import DeviceType, LabeledTrace, TraceDiff


def labelled(label: str, file: str) -> LabeledTrace:
    with tempfile.TemporaryDirectory() as folder:
        text = json.dumps(events(Path(file), 1000), default=float)
        (Path(folder) / "rank0.json.gz").write_bytes(gzip.compress(text.encode(), 1))
        return LabeledTrace(label, t=Trace(trace_dir=folder, trace_files={0: f"{folder}/rank0.json.gz"}))


def main(control: str, test: str) -> dict[str, Any]:
    a, b = labelled("control", control), labelled("test", test)
    for each in (a, b):
        each.t.align_and_filter_trace(include_last_profiler_step=True)
    out: dict[str, Any] = {}
    for name, device in (("gpu", DeviceType.GPU), ("cpu", DeviceType.CPU)):
        for short in (False, True):
            found = TraceDiff.compare_traces(
                a,
                b,
                control_iteration=a.iterations(),
                test_iteration=b.iterations(),
                device_type=device,
                use_short_name=short,
            )
            columns = ("control_counts", "test_counts", "control_total_duration", "test_total_duration")
            rows = {key: [int(row[column]) for column in columns] for key, row in found.iterrows()}
            out[name + (" short" if short else "")] = dict(sorted(rows.items()))
    return out


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):
        result = main(*sys.argv[1:3])
    json.dump(result, sys.stdout, indent=1)
    print()
