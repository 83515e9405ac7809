#!/usr/bin/env bash
# Runs every fuzzer, or the named ones, for a time each: campaign.sh BUILD SECONDS [NAME...], BUILD made with the preset fuzz.
# What was found lies in BUILD/fuzz/NAME; the exit status says whether anything was.
set -euo pipefail

build=$(realpath "$1") seconds=$2
shift 2
names=("$@")
if ((${#names[@]} == 0)); then
  for program in "$build"/tests/fuzz/*_fuzzer; do names+=("$(basename "$program" _fuzzer)"); done
fi

failed=0
for name in "${names[@]}"; do
  folder=$build/fuzz/$name
  mkdir -p "$folder/corpus"
  "$build/tests/fuzz/replay_$name" --write "$folder/corpus"
  # What is leaked shows at the end; a rank's mapping is kept on purpose.
  if (cd "$folder" && "$build/tests/fuzz/${name}_fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=8192 \
    -use_value_profile=1 -print_final_stats=1 corpus) >"$folder/log" 2>&1; then
    echo "$name: clean after $(grep -o 'number_of_executed_units: *[0-9]*' "$folder/log" | grep -o '[0-9]*') inputs in $seconds s"
  else
    echo "$name: FAILED, see $folder"
    tail -n 40 "$folder/log"
    failed=1
  fi
done
exit "$failed"
