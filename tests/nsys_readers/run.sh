#!/usr/bin/env bash
# nsys-ai, which reads what `nsys export --type sqlite` writes, and DuckDB read what we export. They get an environment of their own. Run
# with cuptiprof installed in the current one.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q 'nsys-ai==0.3.0' 'duckdb==1.4.4'
data=$(cd / && python -c "import cuptiprof, pathlib; print(pathlib.Path(cuptiprof.__file__).parent / 'sim' / 'traces')")
for trace in "$data"/train-v100.json.gz "$here"/../data/traces/{alexnet,triton}-a100.json.gz; do
  python -m cuptiprof export "$trace" -f -o "$work/run.sqlite"
  python -m cuptiprof export "$trace" -f -o "$work/run.parquet"
  python -m cuptiprof report "$trace" --view summary --format json > "$work/summary.json"
  "$work/venv/bin/nsys-ai" skill run top_kernels "$work/run.sqlite" --format json -p limit=100000 --no-cache > "$work/kernels.json" 2> /dev/null
  "$work/venv/bin/nsys-ai" info "$work/run.sqlite" > "$work/info.txt" 2> /dev/null
  "$work/venv/bin/python" "$here/compare.py" "$work"
done
