#!/usr/bin/env bash
# Random programs with the extension and the stand-in built with ASan+UBSan, and with TSan, both at once:
# run_sanitized.sh [PROGRAMS [SEED]]. Python itself is not instrumented; its locks are seen, as the runtime is preloaded.
set -euo pipefail
cd "$(dirname "$0")/../.."
programs=${1:-200} seed=${2:-1}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2> /dev/null || true; rm -rf "$work"' EXIT
# Python's own arenas live as long as the process: leaks are for tests/native. A report ends the run.
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:suppressions=$PWD/tests/random_programs/tsan.supp

build_and_run() {
  local sanitizer=$1 runtime=$2 room=$work/$1 began=$SECONDS
  pip install -q --no-deps --target "$room" . -Cbuild-dir="$work/build-$sanitizer" -Ccmake.build-type=None \
    -Ccmake.define.CMAKE_CXX_FLAGS='-O1 -g1 -DNDEBUG' -Ccmake.define.CUPTIPROF_SANITIZE="$sanitizer" \
    -Ccmake.define.CUPTIPROF_PROBES=OFF || return 1
  echo "== $sanitizer: built in $((SECONDS - began)) s"
  # libstdc++ too, or the runtime does not find what throws: Python itself is not linked with it.
  (export PYTHONPATH=$room PYTHONMALLOC=malloc
   export LD_PRELOAD="$(gcc -print-file-name="$runtime") $(gcc -print-file-name=libstdc++.so)"
   cd tests
   # An editable install comes before PYTHONPATH, and is not instrumented.
   python -W ignore -c "import cuptiprof, sys; sys.exit(not cuptiprof.__file__.startswith('$room'))" &&
     python -W ignore -m random_programs --any-memory --seed "$seed" --programs "$programs") || return 1
  echo "== $sanitizer: done after $((SECONDS - began)) s"
}

build_and_run address,undefined libasan.so > "$work/address.out" 2>&1 &
address=$!
build_and_run thread libtsan.so > "$work/thread.out" 2>&1 &
thread=$!
failed=0
wait "$address" || failed=1
cat "$work/address.out"
wait "$thread" || failed=1
cat "$work/thread.out"
exit "$failed"
