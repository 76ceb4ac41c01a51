#!/usr/bin/env bash
# speedscope's own importer (of its npm package, in headless Chromium) makes of our files what our reports say. Needs npm, a
# chromium, and cuptiprof installed in the current environment.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && npm pack --silent speedscope@1.25.0 > /dev/null && tar xzf speedscope-1.25.0.tgz)
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q 'playwright==1.*'
data=$(cd / && python -c "import cuptiprof, pathlib; print(pathlib.Path(cuptiprof.__file__).parent / 'sim' / 'traces')")
mkdir "$work/files"
for trace in "$data"/train-v100.json.gz "$here"/../data/traces/*.json.gz; do
  name=$work/files/$(basename "$trace" .json.gz)
  python -m cuptiprof report "$trace" --view summary --format json > "$name.summary"
  for by in python region module operator; do
    for suffix in speedscope.json folded pb.gz; do
      python -m cuptiprof export "$trace" --by "$by" -o "$name.$by.$suffix"
    done
  done
done
"$work/venv/bin/python" "$here/compare.py" "$work/package/dist/release" "$work/files"
