# What .ci/run and .ci/nightly share; sourced, with the repository's root as working folder.

# step NAME COMMAND...: runs it, says when it begins and how long it took. The first step that fails ends the run.
step() {
  local name=$1 began=$SECONDS
  shift
  echo "==== $name ($(date +%T), ${SECONDS} s)"
  "$@"
  echo "==== $name: $((SECONDS - began)) s"
}

clang_format() {
  git ls-files 'csrc/*.cpp' 'csrc/*.h' 'tests/native/*.cpp' 'benchmarks/*.cpp' | xargs clang-format --dry-run --Werror
}

# random_programs N [SEED]: the first N programs of a seed, in two processes.
random_programs() {
  local half=$(($1 / 2)) seed=${2:-1} first status=0
  (cd tests && exec python -W ignore -m random_programs --seed "$seed" --programs "$half") &
  first=$!
  (cd tests && python -W ignore -m random_programs --seed "$seed" --first "$half" --programs "$(($1 - half))") || status=$?
  wait "$first" || status=$?
  return "$status"
}
