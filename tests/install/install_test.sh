#!/usr/bin/env bash
# Installs a built tree into an empty prefix and uses it as a stranger would: find_package, pkg-config, C and C++, mpirun.
# Usage: install_test.sh SOURCE_DIR BUILD_DIR
set -euo pipefail

source_dir=$1
build_dir=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix

fail() {
  echo "install_test: $*" >&2
  exit 1
}

run_sum() { # PROGRAM: two ranks must refuse the null pointer, then sum rightly
  local output
  output=$(mpirun --allow-run-as-root --oversubscribe -np 2 "$1") || fail "$1 ended with status $? and said: $output"
  echo "$output"
  for rank in 0 1; do
    grep -q "^rank $rank: refused: ." <<<"$output" || fail "rank $rank did not say why the null pointer was refused"
    grep -q "^rank $rank of 2: 1000 sums, 0 wrong$" <<<"$output" || fail "rank $rank has no right sums"
  done
}

echo "== install"
cmake --install "$build_dir" --prefix "$prefix" >/dev/null
library=$(find "$prefix" -name libfccl.so)
[ -n "$library" ] || fail "no libfccl.so under the prefix"
grep -q 'SONAME.*\[libfccl\.so\.0\]' <<<"$(readelf -d "$library")" || fail "the SONAME is not libfccl.so.0"
libdir=$(dirname "$library")
"$source_dir/tests/install/search_paths.py" "$prefix" || fail "a file of the prefix searches the current directory"

echo "== find_package"
cmake -S "$source_dir/examples/sum" -B "$scratch/sum" -D CMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$scratch/sum" >/dev/null
run_sum "$scratch/sum/sum"
cmake -S "$source_dir/examples/pipeline" -B "$scratch/pipeline" -D CMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$scratch/pipeline" >/dev/null
"$scratch/pipeline/pipeline" || fail "the pipeline does not learn"

echo "== pkg-config, from a prefix that was moved"
mv "$prefix" "$scratch/moved"
libdir=$scratch/moved${libdir#"$prefix"}
export PKG_CONFIG_PATH=$libdir/pkgconfig
read -ra flags < <(pkg-config --cflags --libs fccl)
OMPI_CXX=${CXX:-g++} mpicxx -std=c++20 "$source_dir/examples/sum/main.cpp" -o "$scratch/sum_pkg_config" \
  "${flags[@]}" "-Wl,-rpath,$libdir"
run_sum "$scratch/sum_pkg_config"

echo "== the perf binaries, from the moved prefix"
run_perf() { "$@" "$scratch/moved/bin/all_reduce_perf" -b 64K -e 64K -n 2 || fail "all_reduce_perf ended with status $?"; }
for ranks in "env" "mpirun --allow-run-as-root --oversubscribe -np 2"; do
  # shellcheck disable=SC2086  # a command and its arguments
  grep -q "^# Out of bounds values : 0 OK" <<<"$(run_perf $ranks)" || fail "all_reduce_perf under '$ranks' has no good end"
done

echo "== the C header in plain C"
echo '#include <fccl/fccl.h>' >"$scratch/header.c"
read -ra flags < <(pkg-config --cflags fccl)
"${CC:-cc}" -std=c99 -pedantic-errors -Wall -Wextra -Werror "${flags[@]}" -fsyntax-only "$scratch/header.c"
echo "install_test: passed"
