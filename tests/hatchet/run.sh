#!/usr/bin/env bash
# Hatchet reads what we export. It needs an older pandas than we do, so it gets an environment of its own. Run with cuptiprof
# installed in the current one.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q 'llnl-hatchet==2026.2.0'
data=$(cd / && python -c "import cuptiprof, pathlib; print(pathlib.Path(cuptiprof.__file__).parent / 'sim' / 'traces')")
for trace in "$data"/train-v100.json.gz "$here"/../data/traces/*.json.gz; do
  python -m cuptiprof export "$trace" -f -o "$work/run.hatchet.json"
  python -m cuptiprof report "$trace" --view regions --format json > "$work/regions.json"
  python -m cuptiprof report "$trace" --view summary --format json > "$work/summary.json"
  "$work/venv/bin/python" "$here/compare.py" "$work/run.hatchet.json" "$work/regions.json" "$work/summary.json"
done
