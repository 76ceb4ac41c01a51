# What .ci/run and .ci/nightly share; sourced, with the repository's root as working folder.

exec 3>&1  # where a lane says how far it is

# step NAME COMMAND...: runs it, says when it begins and how long it took. The first step that fails ends the run.
step() {
  local name=$1 began=$SECONDS
  shift
  say "==== $name ($(date +%T), ${SECONDS} s)"
  "$@"
  say "==== $name: $((SECONDS - began)) s"
}

# say LINE: into the output, and from a lane, whose output comes later, now too.
say() {
  echo "$1"
  if [ -n "${lane:-}" ]; then echo "[$lane] $1" >&3; fi
}

# in_lanes FUNCTION...: runs them beside each other. The output of each is kept and printed whole when it is done. The first that
# fails ends the run, its output last; whatever ends the run, nothing that was started in a lane goes on.
in_lanes() {
  local name status pid
  lanes=()  # process group -> function; global, for the trap
  lane_logs=$(mktemp -d)
  trap end_lanes EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  set -m  # a process group for each, and Ctrl-C for those in it
  for name in "$@"; do
    (set +m; trap - INT TERM HUP EXIT; lane=$name; "$name") > "$lane_logs/$name" 2>&1 < /dev/null &
    lanes[$!]=$name
  done
  set +m
  while [ ${#lanes[@]} -gt 0 ]; do
    sleep 0.2  # `wait -n` of bash 5.2 does not see what ended before it was called
    for pid in "${!lanes[@]}"; do
      if kill -0 "$pid" 2> /dev/null; then continue; fi
      name=${lanes[$pid]} status=0
      wait "$pid" || status=$?
      echo "======== $name"
      cat "$lane_logs/$name"
      if [ "$status" -ne 0 ]; then
        echo "======== $name failed with status $status; what ran beside it was stopped"
        exit "$status"
      fi
      unset "lanes[$pid]"
    done
  done
}

# Ctrl-C first: pytest and its tests then clear up what they have started.
end_lanes() {
  local pid signal
  trap '' INT TERM HUP
  for signal in INT TERM KILL; do
    for pid in "${!lanes[@]}"; do kill -"$signal" -- "-$pid" 2> /dev/null || unset "lanes[$pid]"; done
    for _ in {1..50}; do
      for pid in "${!lanes[@]}"; do kill -0 -- "-$pid" 2> /dev/null || unset "lanes[$pid]"; done
      if [ ${#lanes[@]} -eq 0 ]; then break 2; fi
      sleep 0.1
    done
  done
  rm -rf "$lane_logs"
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
