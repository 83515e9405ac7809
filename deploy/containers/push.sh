#!/usr/bin/env bash
# Pushes an image that build.sh has built: push.sh tests|train|etcd [--dry-run]
set -euo pipefail
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$folder/names.sh"
read_names "$@"
[[ $REGISTRY != localhost ]] || fail "REGISTRY is localhost, where nothing can be pushed: set it in $folder/.env to that of yours"
run "$tool" push "$name"
