#!/usr/bin/env bash
# Runs and traces in S3, as moto's server on this machine plays it. Run with cuptiprof installed in the current environment.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python -m pip install -q --target "$work/more" 's3fs>=2023.10' 'moto[server]==5.*' 'ibis-framework[duckdb]>=9.5'
cd "$work"
PYTHONPATH="$work/more" python "$here/in_s3.py"
