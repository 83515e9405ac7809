# Reads .env for build.sh and push.sh: sets name, the whole name of an image, and tool, which makes images.

fail() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

# run COMMAND...: runs it, or with --dry-run prints it.
run() {
  if [[ -z $dry_run ]]; then
    "$@"
  else
    printf '%q ' "$@"
    echo
  fi
}

# read_names KIND [--dry-run]
read_names() {
  local variable line known=(tests train etcd)
  [[ " ${known[*]} " == *" ${1:-} "* ]] || fail "say which image: ${known[*]}"
  kind=$1 dry_run=${2:-}
  [[ -z $dry_run || $dry_run == --dry-run ]] || fail "there is no option $dry_run; there is --dry-run"
  for variable in REGISTRY IMAGE TAG BASE; do
    line=$(grep "^$variable=" "$folder/.env" 2>/dev/null || true)
    [[ -n ${!variable:-} ]] || printf -v "$variable" '%s' "${line#*=}"
  done
  [[ -n $REGISTRY ]] || fail "$folder/.env has no REGISTRY: add the line REGISTRY=localhost, or the address of yours"
  [[ -n $TAG ]] || fail "$folder/.env has no TAG: add the line TAG=latest"
  [[ -n $BASE ]] || fail "$folder/.env has no BASE: add the line BASE=docker.io/library/debian:bookworm"
  if [[ -z $IMAGE ]]; then
    IMAGE=fccl-$kind
    [[ $kind != etcd ]] || IMAGE=etcd
  fi
  name=$REGISTRY/$IMAGE:$TAG
  tool=${CONTAINER_TOOL:-$(basename "$(command -v docker || command -v podman || echo docker)")}
  [[ -n $dry_run ]] || command -v "$tool" >/dev/null ||
    fail "there is no $tool: install it (apt-get install docker.io, or podman), or set CONTAINER_TOOL"
}
