#!/usr/bin/env bash
# HTA needs an older pandas than we do, so it gets an environment of its own. Run with cuptiprof installed in the current one.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q 'HolisticTraceAnalysis==0.5.0' 'pandas<3' 'numpy<2'
data=$(cd / && python -c "import cuptiprof, pathlib; print(pathlib.Path(cuptiprof.__file__).parent / 'sim' / 'traces')")
pairs=()
for trace in "$data"/train-v100.json.gz "$here"/../data/traces/*.json.gz; do
  ours=$work/$(basename "$trace")
  cuptiprof export "$trace" -o "$ours"
  pairs+=("$trace" "$ours")
done
"$work/venv/bin/python" "$here/compare.py" "${pairs[@]}"
# What HTA finds in the traces is what lies beside the tests of our analyses (tests/unit/test_analyses_hta.py).
ranks=$here/../data/ranks
"$work/venv/bin/python" "$here/analyses.py" "$ranks/rank0.json.gz,$ranks/rank1.json.gz" "$data/train-v100.json.gz" \
  "$here"/../data/traces/*.json.gz > "$work/hta.json"
diff "$here/../data/analyses/hta.json" "$work/hta.json"
"$work/venv/bin/python" "$here/trace_diff.py" "$ranks/rank0.json.gz" "$ranks/rank1.json.gz" > "$work/trace_diff.json"
diff "$here/../data/analyses/trace_diff.json" "$work/trace_diff.json"
echo "HTA: what it finds is what our analyses are compared with"
