#!/usr/bin/env bash
# Runs a program in a folder in which STRAY lies under the name of the plug-in and of everything that the libraries need.
# Usage: among_strays.sh STRAY [LIBRARY...] -- PROGRAM [ARGUMENT...]
set -euo pipefail

stray=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$stray" "$folder/libfccl_ofi.so"
while [ "$1" != -- ]; do
  readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | while read -r name; do cp "$stray" "$folder/$name"; done
  shift
done
shift
cd "$folder"
"$@"
