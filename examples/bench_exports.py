"""A sweep as a DataFrame, Markdown, CSV, JSON lines, a picture and one HTML page.

cuptiprof bench examples/bench_exports.py --json exp.jsonl --html exp.html --format markdown     does much of it without a program.
CUPTIPROF_DEVICE=sim python examples/bench_exports.py FOLDER      (no GPU needed)
"""

import sys
from pathlib import Path

import torch

import cuptiprof
from cuptiprof.bench import run_benchmarks


@cuptiprof.benchmark(params={"n": [256, 512, 1024]}, bytes=lambda n: 8 * n * n)
def exp(n):
    x = torch.randn(n, n, device="cuda" if torch.cuda.is_available() else "cpu")
    return lambda: torch.exp(x)


if __name__ == "__main__":
    folder, results = Path(sys.argv[1]), run_benchmarks(exp)
    results.to_pandas().to_parquet(folder / "exp.parquet")
    for form, end in {"markdown": "md", "csv": "csv", "json": "json"}.items():
        (folder / f"exp.{end}").write_text(results.report().to(form))
    results.plot(folder / "exp.png", "n", "bytes")
    results.save_html(folder / "exp.html")
