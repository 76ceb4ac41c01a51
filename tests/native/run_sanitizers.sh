#!/usr/bin/env bash
# Builds the native code with ASan+UBSan and with TSan and runs the stress tests on the stand-in with many threads.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for sanitizer in address,undefined thread; do
  build="$work/$sanitizer"
  cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCUPTIPROF_PYTHON=OFF -DCUPTIPROF_NATIVE_TESTS=ON \
        -DCUPTIPROF_SANITIZE="$sanitizer" -DCUPTIPROF_PROBES=OFF > "$build.log" 2>&1 || { cat "$build.log"; exit 1; }
  cmake --build "$build" -j 2 --target collector_stress decoder_memory counter_stress counters_through_session shared_machine_stress filter_fuzz probe_device_test cupti_sim > "$build.log" 2>&1 || { tail -50 "$build.log"; exit 1; }
  echo "== $sanitizer"
  export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
  export LSAN_OPTIONS=suppressions=$PWD/tests/native/lsan.supp:print_suppressions=0
  export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
  "$build/collector_stress" "$build/libcupti_sim.so"
  "$build/decoder_memory" "$build/libcupti_sim.so"
  "$build/counter_stress" "$build/libcupti_sim.so"
  "$build/counters_through_session" "$build/libcupti_sim.so"
  "$build/shared_machine_stress" "$build/libcupti_sim.so"
  "$build/filter_fuzz" 300 > /dev/null
  "$build/probe_device_test"
done
