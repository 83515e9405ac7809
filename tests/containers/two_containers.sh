#!/usr/bin/env bash
# Runs a command under mpirun in container a, which starts half of its ranks in container b by ssh: two_containers.sh FOLDER COMMAND...
# The caller gives it a network and mounts of its own. FOLDER has the keys, in ssh/, and will have what podman knows of the network.
set -euo pipefail
folder=$1
shift
ip link set lo up
mkdir -p "$folder/networks"
networked=(podman --network-backend netavark --network-config-dir "$folder/networks")
"${networked[@]}" network create --disable-dns --subnet 10.99.0.0/24 pods >/dev/null
pod=("${networked[@]}" run --rm --network pods --add-host a:10.99.0.2 --add-host b:10.99.0.3 --volume "$folder/ssh:/root/.ssh:ro")
b=$("${pod[@]}" --detach --hostname b --ip 10.99.0.3 localhost/fccl-tests)
trap '"${networked[@]}" rm --force --time 1 "$b" >/dev/null' EXIT
until timeout 1 bash -c '</dev/tcp/10.99.0.3/22' 2>/dev/null; do sleep 0.1; done
"${pod[@]}" --hostname a --ip 10.99.0.2 localhost/fccl-tests mpirun --allow-run-as-root --bind-to none -np 4 --host a:2,b:2 \
  -x PATH -x LD_LIBRARY_PATH "$@"
