"""Holistic Trace Analysis 0.5.0 reads our export as it reads torch.profiler's own file: the same tables from both.

python compare.py ORIGINAL_TRACE OUR_EXPORT      (in an environment with HolisticTraceAnalysis==0.5.0)
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")
from hta.trace_analysis import TraceAnalysis  # noqa: E402


def tables(trace: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(trace, Path(folder) / "rank0.json.gz")
        analysis = TraceAnalysis(trace_dir=folder)
        types, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000, duration_ratio=1.0)
        launches = analysis.get_cuda_kernel_launch_stats(visualize=False)[0]
        return {
            "temporal": analysis.get_temporal_breakdown(visualize=False).to_dict("records"),
            "types": types.to_dict("records"),
            "kernels": sorted(map(str, kernels.to_dict("records"))),
            "launches": sorted(map(str, launches[["correlation", "cpu_duration", "gpu_duration"]].to_numpy().tolist())),
        }


def main() -> None:
    original, ours = tables(sys.argv[1]), tables(sys.argv[2])
    assert len(original["kernels"]) > 10 and len(original["launches"]) > 100
    for name, table in original.items():
        assert ours[name] == table, f"{name}: {str(table)[:500]} != {str(ours[name])[:500]}"
    print(f"HTA: {len(original['kernels'])} kernel rows and {len(original['launches'])} launches agree")


main()
