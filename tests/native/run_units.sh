#!/usr/bin/env bash
# Builds the unit tests of the native classes and runs them, without sanitizers.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=build/units
mkdir -p build
{ cmake -S . -B "$build" -DCUPTIPROF_PYTHON=OFF -DCUPTIPROF_NATIVE_TESTS=ON -DCUPTIPROF_PROBES=OFF \
    && cmake --build "$build" -j 2 --target native_units; } > "$build.log" 2>&1 || { tail -50 "$build.log"; exit 1; }
"$build/native_units"
