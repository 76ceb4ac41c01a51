#!/usr/bin/env bash
# Readers of others make of our pprof profiles what our reports say: Datadog's decoder (pprof-format, of npm), and Go's own pprof,
# of Debian's package unless there is a Go. Needs node, and cuptiprof installed in the current environment.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
(cd "$work" && npm pack --silent pprof-format@2.3.2 > /dev/null && tar xzf pprof-format-2.3.2.tgz)
if command -v go > /dev/null; then
  pprof=(go tool pprof)
else
  package=$(apt-cache depends golang-go | sed -n 's/ *Depends: \(golang-1.*-go\)$/\1/p')
  (cd "$work" && apt-get download -q "$package" > /dev/null 2>&1 && dpkg -x "$package"_*.deb go)
  pprof=("$(find "$work/go" -path '*/tool/*' -name pprof -type f)")
fi
data=$(cd / && python -c "import cuptiprof, pathlib; print(pathlib.Path(cuptiprof.__file__).parent / 'sim' / 'traces')")
for trace in "$data"/train-v100.json.gz "$here"/../data/traces/*.json.gz; do
  python -m cuptiprof report "$trace" --view summary --format json > "$work/summary.json"
  for by in python region module operator; do
    python -m cuptiprof export "$trace" -f --by "$by" -o "$work/run.pb.gz"
    node "$here/decode.mjs" "$work/package/dist/esm/index.js" "$work/run.pb.gz" > "$work/decoded.json"
    # Of all labels: how many launches, and ns.
    for value in launches gpu_time; do
      "${pprof[@]}" -tags -sample_index="$value" -unit=nanoseconds "$work/run.pb.gz" 2> /dev/null > "$work/$value.txt"
    done
    python "$here/compare.py" "$work" "$(basename "$trace") by $by"
  done
done
