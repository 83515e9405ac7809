#!/usr/bin/env bash
# Builds an image: build.sh tests|train|etcd [--dry-run]
#
# REGISTRY, IMAGE, TAG and BASE come from .env; CONTAINER_TOOL is docker or podman, BUILD_OPTIONS are further words for its build.
# tests wants ./dev build before, and train a wheel of fccl in FCCL_WHEEL.
set -euo pipefail
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$folder/../.." && pwd)
source "$folder/names.sh"
read_names "$@"

# add_tests: binaries and launchers, and the libraries that not every distribution has in the version they were linked with.
add_tests() {
  local built=$root/build libraries
  [[ -x $built/perf_tests/all_gather_perf && -x $built/fccl-info ]] || fail "$built has no perf binaries: run ./dev build first"
  libraries=$(ldd "$built/libfccl.so" | sed -nE 's/.*(lib(fmt|hwy|sodium)\.so\S*) => (\S+).*/\3/p')
  run mkdir -p "$context/lib" "$context/build"
  # shellcheck disable=SC2086  # a list of paths
  run cp -L $libraries "$built/libfccl.so.0" "$built/libfccl_ofi.so" "$context/lib"
  run cp -L "$built"/perf_tests/*_perf "$built"/perf_tests/libfccl_launch_*.so "$built/fccl-info" "$context/build"
}

add_train() {
  [[ -f ${FCCL_WHEEL:-} ]] || fail "FCCL_WHEEL names no file: set it to a wheel of fccl, which pip wheel --no-deps . makes"
  run cp "$FCCL_WHEEL" "$context"
  run cp -r "$root/trainer" "$context"
}

add_etcd() { :; }

context=/tmp/context
[[ -n $dry_run ]] || context=$(mktemp -d)
trap '[[ -n $dry_run ]] || rm -rf "$context"' EXIT
"add_$kind"
file=$folder/fccl-$kind.Dockerfile
[[ $kind != etcd ]] || file=$folder/etcd.Dockerfile
# shellcheck disable=SC2086  # a list of words
run "$tool" build ${BUILD_OPTIONS:-} --build-arg "BASE=$BASE" -t "$name" -f "$file" "$context"
