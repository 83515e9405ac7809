# Makes what a release consists of: an sdist, a wheel with an adapter for each torch, the wheel of fccl-sagemaker, their sums.

release_venv=.venv-release

# release [--torch V,...] [--out FOLDER]: the same bytes from whichever folder, if the commit, torch's versions and Debian are the same.
release() {
  local out=dist torches='' work=build/release python=$PWD/$release_venv/bin/python version roots=()
  while (($# > 0)); do
    case $1 in
      --torch) torches=${2:-} && shift ;;
      --torch=*) torches=${1#*=} ;;
      --out) out=${2:-} && shift ;;
      --out=*) out=${1#*=} ;;
      *) die "release takes --torch V,... and --out FOLDER, but got '$1'" ;;
    esac
    shift || break
  done
  [[ -n $out ]] || die "--out wants the name of a folder"
  torches=$(python3 tools/release/torches.py versions "$torches") || exit 1
  umask 022
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}
  export SOURCE_DATE_EPOCH
  [[ -z $(git status --porcelain 2>/dev/null) ]] || say "dev: this tree has changes that are not committed, so nobody can make the same wheel"

  lock
  need_packages "${packages_build[@]}"
  need_release_environment
  fetch_cuda_headers "$python"
  mkdir -p "$work"
  for version in $torches; do
    roots+=("$PWD/$work/torch/$version")
    step "unpack headers and libraries of torch $version" "release-torch-$version" \
      "$python" tools/release/torches.py unpack "$version" "$work/torch/$version"
  done
  # From nothing each time: files of an sdist have old dates, by which a build would take changed ones for unchanged.
  rm -rf "$work"/{sdist,source,build,raw,repaired,dist}
  mkdir -p "$work"/{source,dist}
  step "make the sdist" release-sdist "$python" -m build --no-isolation --sdist --outdir "$work/sdist" .
  tar -xzf "$work"/sdist/fccl-*.tar.gz --strip-components 1 -C "$work/source"
  build_wheels "$work" "$(IFS=';' && echo "${roots[*]}")"
  cp "$work"/sdist/fccl-*.tar.gz "$work"/dist
  step "check what is in them" release-check "$python" tools/release/check.py --not "$PWD/" "$work"/dist/*
  unlock
  mkdir -p "$out"
  rm -f "$out"/fccl[-_]* "$out"/SHA256SUMS
  cp "$work"/dist/* "$out"
  (cd "$out" && sha256sum fccl[-_]* >SHA256SUMS && cat SHA256SUMS)
}

# build_wheels FOLDER ROOTS: from FOLDER/source, as anybody could from the sdist, for the torches in ROOTS.
build_wheels() {
  local work=$1 roots=$2 python=$PWD/$release_venv/bin/python bin=$PWD/$release_venv/bin
  use_ccache
  step "build the wheel (a minute of processor time for each torch, and four for the library)" release-wheel \
    "$python" -m build --no-isolation --wheel --outdir "$work/raw" \
    -Cbuild-dir="$PWD/$work/build" -Cinstall.components=torch -Ccmake.define.FCCL_TORCH_FOLDERS="$roots" \
    -Ccmake.define.FCCL_CUDA=ON -Ccmake.define.FCCL_CUDA_INCLUDE="$PWD/build/cuda-headers/12.5/nvidia/cuda_runtime/include" \
    "$work/source"
  # libfabric is the system's, since its providers belong to the hardware; torch is in the process before the adapter.
  step "bring the libraries that it needs" release-repair env PATH="$bin:$PATH" auditwheel repair \
    --plat manylinux_2_34_x86_64 --only-plat --exclude libfabric.so.1 --exclude libtorch_cpu.so --exclude libc10.so \
    --wheel-dir "$work/repaired" "$work"/raw/fccl-*.whl
  step "name what is compiled into it, and add licenses" release-materials env PATH="$bin:$PATH" "$python" \
    tools/release/materials.py "$work"/repaired/fccl-*.whl "$work/dist"
  step "build the wheel of fccl-sagemaker" release-sagemaker "$python" -m build --no-isolation --wheel --outdir "$work/dist" \
    "$work/source/sagemaker"
}

# Sees to it that there is an environment with what makes wheels; torch is not among it.
need_release_environment() { need_environment_of release "$release_venv" tools/release/requirements.txt "makes wheels"; }
