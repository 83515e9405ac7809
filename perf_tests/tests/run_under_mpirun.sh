#!/usr/bin/env bash
# Runs a perf binary under mpirun and compares the exit status; a run that succeeds must also report no wrong element.
# Usage: run_under_mpirun.sh PROCESSES STATUS BINARY [ARGUMENT...]
set -uo pipefail

processes=$1
wanted=$2
shift 2

output=$(mpirun --allow-run-as-root --oversubscribe -np "$processes" "$@" 2>&1)
status=$?
echo "$output"
if [ "$status" -ne "$wanted" ]; then
  echo "exit status $status, wanted $wanted" >&2
  exit 1
fi
if [ "$wanted" -eq 0 ] && ! grep -q '^# Out of bounds values : 0 OK$' <<<"$output"; then
  echo "no line says that nothing was wrong" >&2
  exit 1
fi
