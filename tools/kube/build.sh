#!/usr/bin/env bash
# Compiles a Kubernetes from Debian's source package: build.sh FOLDER, into FOLDER/bin; the rest of what it makes there it removes.
#
# Debian has no package of a control plane. Its source package is that of 1.20.2 with all that it is linked with, as a GOPATH.
set -euo pipefail
folder=$(cd "$1" && pwd)
version=1.20.2
programs=(kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy)
work=$folder/work
source=$work/src/k8s.io/kubernetes
export GOPATH=$work GOCACHE=$work/cache GO111MODULE=off GOPROXY=off

# download: the lists and sources of apt stay as they are, since these are of its own.
download() {
  local apt=$work/apt mirror options
  mkdir -p "$apt"/etc/apt/{preferences.d,apt.conf.d} "$apt"/var/lib/{apt/lists/partial,dpkg} "$apt"/var/cache/apt/archives/partial
  touch "$apt/var/lib/dpkg/status"
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' 'Codename: bookworm' | head -n 1)
  [[ -n $mirror ]] || { echo "apt knows no mirror with bookworm/main, which has the source package kubernetes" && exit 1; }
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm main" >"$apt/etc/apt/sources.list"
  options=(-o "Dir=$apt" -o "Dir::State::status=$apt/var/lib/dpkg/status")
  apt-get "${options[@]}" update
  env -C "$work" apt-get "${options[@]}" source --download-only kubernetes
  env -C "$work" apt-get download golang-github-modern-go-reflect2-dev
}

unpack() {
  local vendored=$source/vendor/github.com/modern-go/reflect2
  mkdir -p "$source"
  tar -C "$source" --strip-components 1 -xf "$work"/kubernetes_*.orig.tar.gz
  # The vendored one ends an apiserver that a later Go than 1.17 has compiled, at its first custom resource.
  dpkg -x "$work"/golang-github-modern-go-reflect2-dev_*.deb "$work/reflect2"
  rm -r "$vendored"
  cp -r "$work/reflect2/usr/share/gocode/src/github.com/modern-go/reflect2" "$vendored"
  rm -f "$vendored"/go_{above_17,below_17,below_19}.go
}

# generate: the one generated file that the source package lacks, which describes the types of the interface.
generate() {
  local types
  types=$(grep -rl --include='*.go' '+k8s:openapi-gen=' pkg staging/src/k8s.io |
    grep -vE 'code-generator|sample-|_test\.go|/testdata/' | xargs -n 1 dirname |
    sed 's#^staging/src/k8s.io#k8s.io/kubernetes/vendor/k8s.io#; s#^pkg#k8s.io/kubernetes/pkg#' | LC_ALL=C sort -u | paste -sd ,)
  go build -p 1 -o "$work/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
  "$work/openapi-gen" --logtostderr -i "$types" -p k8s.io/kubernetes/pkg/generated/openapi -O zz_generated.openapi \
    -h vendor/k8s.io/code-generator/hack/boilerplate.go.txt -r "$work/violations"
}

compile() {
  local program of=k8s.io/kubernetes/vendor/k8s.io/component-base/version
  mkdir -p "$work/bin"
  for program in "${programs[@]}"; do
    echo "compiling $program"
    go build -p "${CMAKE_BUILD_PARALLEL_LEVEL:-1}" -trimpath -o "$work/bin/$program" -ldflags \
      "-s -w -X $of.gitVersion=v$version -X $of.gitMajor=1 -X $of.gitMinor=20" "./cmd/$program"
  done
}

rm -rf "$work" && mkdir -p "$work"
download
unpack
cd "$source"
generate
compile
mkdir -p "$folder/bin"
mv "$work"/bin/* "$folder/bin"
# A kept one of 2 GB would spare a minute of the next one.
chmod -R u+w "$work" && rm -r "$work"
