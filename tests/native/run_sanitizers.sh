#!/usr/bin/env bash
# Builds the native code with ASan+UBSan and with TSan, both at once, and runs the unit tests, and the stress tests on the
# stand-in with many threads: run_sanitizers.sh [TIMES].
set -euo pipefail
cd "$(dirname "$0")/../.."
times=${1:-1}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2> /dev/null || true; rm -rf "$work"' EXIT
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export LSAN_OPTIONS=suppressions=$PWD/tests/native/lsan.supp:print_suppressions=0
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1

on_stand_in=(collector_stress decoder_memory counter_stress counters_through_session shared_machine_stress)

build_and_run() {
  local sanitizer=$1 build=$work/$1 began=$SECONDS test
  # -O1: what the sanitizers add is most of what there is to compile; -g1: lines in stacks, no variables.
  if ! { cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS='-O1 -g1 -DNDEBUG' -DCUPTIPROF_PYTHON=OFF \
               -DCUPTIPROF_NATIVE_TESTS=ON -DCUPTIPROF_SANITIZE="$sanitizer" -DCUPTIPROF_PROBES=OFF \
         && cmake --build "$build" --target "${on_stand_in[@]}" filter_fuzz probe_device_test native_units cupti_sim; } > "$build.log" 2>&1
  then
    tail -50 "$build.log"
    return 1
  fi
  echo "== $sanitizer: built in $((SECONDS - began)) s"
  for ((i = 0; i < times; i++)); do
    "$build/native_units"
    for test in "${on_stand_in[@]}"; do "$build/$test" "$build/libcupti_sim.so"; done
    "$build/filter_fuzz" 300 > /dev/null
    "$build/probe_device_test"
  done
  echo "== $sanitizer: done after $((SECONDS - began)) s"
}

build_and_run address,undefined > "$work/address.out" 2>&1 &
address=$!
build_and_run thread > "$work/thread.out" 2>&1 &
thread=$!
failed=0
wait "$address" || failed=1
cat "$work/address.out"
wait "$thread" || failed=1
cat "$work/thread.out"
exit "$failed"
