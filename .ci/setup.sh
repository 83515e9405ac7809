# Installs what is missing, and only that: system packages, a virtual environment, and the package fccl in it.

packages_build=(
  g++ ccache cmake ninja-build pkg-config libsodium-dev libspdlog-dev libfmt-dev libexpected-dev libhwy-dev libpugixml-dev libhwloc-dev
  libfabric-dev nlohmann-json3-dev
)
packages_test=(
  python3 iproute2 libgtest-dev libgmock-dev libbenchmark-dev openmpi-bin libopenmpi-dev mpich libmpich-dev
)
packages_fuzz=(clang-19 libclang-rt-19-dev)
packages_lint=(git clang-format-19 clang-tidy-19)
packages_cluster=(python3 iproute2)
packages_launchers=(slurmd slurmctld slurm-client)
packages_slurm=(python3 iproute2 munge "${packages_launchers[@]}")
packages_python=(python3 python3-venv)

# Ninja alone would run more compilers than there are cores.
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

# use_ccache: the Python package and the build folders compile the same files, which it does once, if both name one compiler alike.
use_ccache() {
  export CXX=${CXX:-c++}
  if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}; fi
}

# One ./dev at a time installs and builds; the lock is let go before tests or training run.
lock() {
  mkdir -p build/log
  exec 9>build/log/lock
  flock --nonblock 9 && return
  say "dev: waiting for another ./dev that installs or builds"
  # A signal is served between two attempts.
  until flock --nonblock 9; do sleep 1; done
}
unlock() { exec 9>&-; }

# need_packages NAME...: sees to it that these Debian packages are installed.
need_packages() {
  local missing line
  if ! command -v dpkg-query >/dev/null; then
    [[ -e build/log/packages ]] ||
      say "dev: this is not Debian, so nothing is installed here; the packages needed are the equivalents of: $*"
    mkdir -p build/log && : >build/log/packages
    return
  fi
  missing=$(comm -23 <(printf '%s\n' "$@" | sort) \
    <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null | sed -n 's/ installed$//p' | sort) | tr '\n' ' ')
  [[ -n $missing ]] || return 0
  line="apt-get update && apt-get install -y --no-install-recommends $missing"
  if ((EUID == 0)); then
    step "install packages: $missing" packages install_packages env "$missing"
  elif sudo -n true 2>/dev/null; then
    step "install packages: $missing" packages install_packages "sudo env" "$missing"
  else
    die "these packages are missing, and only root may install them; run this line, then ./dev again:
  sudo sh -c '$line'"
  fi
}

# install_packages PREFIX NAMES: PREFIX is what runs a command as root.
install_packages() {
  local apt="$1 DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300"
  # shellcheck disable=SC2086  # both are lists of words
  {
    # An update that reaches only some of the sources may still know every package that is needed.
    $apt update || echo "apt-get update failed; going on with the lists at hand"
    $apt install -y --no-install-recommends $2
  }
}

requirements=.ci/requirements.txt
pinned_torch=$(sed -n 's/^torch==//p' "$requirements")
other_torch_versions=(2.11.0 2.15.0)

# use_torch VERSION: what follows is about this version, and so about its environment: .venv or .venv-VERSION.
use_torch() {
  [[ $1 =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || die "FCCL_TORCH names a version of torch such as $pinned_torch, but it is '$1'"
  torch_version=$1
  venv=.venv
  [[ $torch_version == "$pinned_torch" ]] || venv=.venv-$torch_version
}
use_torch "${FCCL_TORCH:-$pinned_torch}"

# Prints the first Python that is new enough for the pinned packages and can make an environment.
find_python() {
  local candidate
  for candidate in python3 /usr/bin/python3 python3.11 python3.12 python3.13 python3.14; do
    if "$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  return 1
}

# Sees to it that there is a compiler, and a virtual environment with what .ci/requirements.txt names.
need_environment() {
  local python wanted=build/log/requirements-$torch_version.txt packages=("${packages_build[@]}")
  [[ -x $venv/bin/python ]] || find_python >/dev/null || packages+=("${packages_python[@]}")
  need_packages "${packages[@]}"
  mkdir -p build/log
  sed "s/^torch==.*/torch==$torch_version/" "$requirements" >"$wanted"
  # Each torchvision wants one torch, and the newest torch has none yet: the tests that need it are skipped there.
  [[ $torch_version == "$pinned_torch" ]] || sed -i '/^torchvision==/d' "$wanted"
  [[ -x $venv/bin/python ]] && cmp -s "$wanted" "$venv/requirements.txt" && return
  if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    python=$(find_python) ||
      die "no Python of version 3.11 or later with the module venv was found; install one and put it first in PATH"
    step "make the virtual environment $venv" "venv-$torch_version" "$python" -m venv --clear "$venv"
  fi
  step "install torch $torch_version and the other Python packages into $venv (5 GB; a few minutes)" "pip-$torch_version" \
    "$venv/bin/python" -m pip install --disable-pip-version-check --requirement "$wanted"
  cp "$wanted" "$venv/requirements.txt"
}

# Sees to it that a virtual environment beside that of the tests has what a list names, and nothing of torch.
# need_environment_of NAME ENVIRONMENT LIST PURPOSE: the steps' logs have the name.
need_environment_of() {
  local name=$1 environment=$2 wanted=$3 purpose=$4 python
  cmp -s "$wanted" "$environment/requirements.txt" && return
  python=$(find_python) || {
    need_packages "${packages_python[@]}"
    python=$(find_python)
  }
  step "make the virtual environment $environment" "venv-$name" "$python" -m venv --clear "$environment"
  step "install what $purpose into $environment" "pip-$name" "$environment/bin/python" -m pip install \
    --disable-pip-version-check --requirement "$wanted"
  cp "$wanted" "$environment/requirements.txt"
}

# Sees to it that the package fccl in the virtual environment is built from the sources as they are now.
need_package() {
  local sources library=
  use_ccache
  sources=$(digest CMakeLists.txt pyproject.toml cmake include plugins src tools/CMakeLists.txt tools/fccl_info torch_backend "$venv/requirements.txt")
  if [[ ! -e $venv/fccl.sources || $(<"$venv/fccl.sources") != "$sources" ]]; then
    # The library of the folder build is the same, if that serves CUDA too: torch's headers serve it where no toolkit is.
    if grep -q '^FCCL_CUDA_INCLUDE:PATH=/' build/CMakeCache.txt 2>/dev/null && [[ -e build/build.ninja ]]; then
      configure_and_build release fccl fccl_ofi fccl-info
      library=$PWD/build
    fi
    step "build the package fccl for torch $torch_version" "package-$torch_version" env PATH="$PWD/$venv/bin:$PATH" \
      "$venv/bin/python" -m pip install --verbose --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall \
      --config-settings=build-dir="build/torch-$torch_version" --config-settings=cmake.define.FCCL_PREBUILT="$library" .
    echo "$sources" >"$venv/fccl.sources"
  fi
  need_sagemaker
}

# The same for the package fccl-sagemaker, which is Python alone.
need_sagemaker() {
  local sources
  sources=$(digest sagemaker/pyproject.toml sagemaker/setup.py sagemaker/fccl_sagemaker "$venv/requirements.txt")
  [[ ! -e $venv/sagemaker.sources || $(<"$venv/sagemaker.sources") != "$sources" ]] || return 0
  step "install the package fccl-sagemaker for torch $torch_version" "sagemaker-$torch_version" \
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall ./sagemaker
  echo "$sources" >"$venv/sagemaker.sources"
}

frameworks_venv=.venv-frameworks

# Sees to it that there is an environment with the frameworks, which reads torch and fccl from the one of $venv.
need_frameworks() {
  local wanted=torch_backend/frameworks/requirements.txt constraints=build/log/constraints-frameworks.txt packages
  cmp -s "$wanted" "$frameworks_venv/requirements.txt" && return
  # Its pip and setuptools are those of $venv, too: the ones that Python brings are too old to build what is built from source.
  step "make the virtual environment $frameworks_venv" venv-frameworks "$venv/bin/python" -m venv --clear --without-pip "$frameworks_venv"
  packages=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo "$packages" >"${packages/"/$venv/"/"/$frameworks_venv/"}/torch_environment.pth"
  # torchtitan wants an older datasets than $venv has, and gets one of its own.
  sed '/^datasets==/d' "$venv/requirements.txt" >"$constraints"
  step "install the frameworks into $frameworks_venv (a few minutes)" pip-frameworks "$frameworks_venv/bin/python" -m pip install \
    --disable-pip-version-check --no-build-isolation --constraint "$constraints" --requirement "$wanted"
  cp "$wanted" "$frameworks_venv/requirements.txt"
}

# configure_and_build PRESET [TARGET...]
configure_and_build() {
  local preset=$1 folder=build
  shift
  [[ $preset == release ]] || folder=build-$preset
  need_packages "${packages_build[@]}" "${packages_test[@]}"
  use_ccache
  if [[ ! -e $folder/build.ninja ]]; then
    step "configure $folder" "configure-$preset" cmake --preset "$preset"
  fi
  step "build $folder" "build-$preset" cmake --build "$folder" --target "${@:-all}"
}

# configure_for_readers [CMAKE-ARGUMENT...]: build/lint, whose compile_commands.json names every source by itself, as clangd and
# clang-tidy need it. The build compiles sources together.
configure_for_readers() {
  step "configure build/lint" configure-lint cmake --preset release -B build/lint -DCMAKE_UNITY_BUILD=OFF "$@"
}

# build_cpp_trainer: trainer/cpp, as anybody would build it outside the tree, against an installed prefix and the torch of $venv.
build_cpp_trainer() {
  local folder=build/cpp-trainer component
  need_environment
  configure_and_build release fccl fccl_ofi
  for component in runtime development; do
    step "install $component into $folder/prefix" cpp-trainer-install cmake --install build --prefix "$folder/prefix" --component "$component"
  done
  step "configure $folder/program" cpp-trainer-configure cmake -G Ninja -S trainer/cpp -B "$folder/program" \
    -D CMAKE_PREFIX_PATH="$PWD/$folder/prefix" -D Python3_EXECUTABLE="$PWD/$venv/bin/python"
  step "build $folder/program" cpp-trainer-build cmake --build "$folder/program" --target all draws
}

# fetch_cuda_headers [PYTHON]: those of the oldest CUDA that the device must compile with, by PYTHON's pip or else that of $venv.
# Without them a test is left out, and all others run.
fetch_cuda_headers() {
  local folder=build/cuda-headers/12.5 python=${1:-$venv/bin/python}
  [[ ! -e $folder ]] || return 0
  if (($# == 0)); then
    lock
    need_environment
    unlock
  fi
  try_step "fetch the headers of CUDA 12.5" cuda-headers "$python" -m pip install --disable-pip-version-check --no-deps \
    --target "$folder" nvidia-cuda-runtime-cu12==12.5.82 || true
}

# fetch_intel_mpi: its wheels hold its libraries, headers and mpiexec.hydra. Without them its tests are left out, and all others run.
fetch_intel_mpi() {
  local folder=build/intel-mpi
  [[ ! -e $folder/include/mpi.h ]] || return 0
  lock
  need_environment
  unlock
  try_step "fetch Intel MPI" intel-mpi "$venv/bin/python" -m pip install --disable-pip-version-check --ignore-installed \
    --prefix "$folder" impi-rt==2021.18.1 impi-devel==2021.18.1 || true
}

# fetch_prometheus: it and promtool, out of Debian's package, which installed would also serve. Without them tests are left out.
fetch_prometheus() {
  local folder=build/prometheus
  [[ ! -x $folder/usr/bin/promtool ]] || return 0
  mkdir -p "$folder"
  try_step "fetch Prometheus" prometheus env -C "$folder" bash -c 'apt-get download prometheus && dpkg -x prometheus_*.deb .' || true
}

# fetch_etcd: out of Debian's package of its server, as promtool. Without it the tests of rendezvous by etcd are left out.
fetch_etcd() {
  local folder=build/etcd
  [[ ! -x $folder/usr/bin/etcd ]] || return 0
  mkdir -p "$folder"
  try_step "fetch etcd" etcd env -C "$folder" bash -c 'apt-get download etcd-server && dpkg -x etcd-server_*.deb .' || true
}

# What ./dev gpu runs beside the probes.
gpu_targets=(fccl-info cuda_conformance_test fccl_ofi {all_gather,all_reduce,alltoall,broadcast,gather,reduce,reduce_scatter,scatter}_perf)
efa_targets=(fccl-info fccl_ofi {all_gather,reduce_scatter,all_reduce,sendrecv}_perf)

# build_probes: the probes of one GPU, in build-gpu: a project of its own, since a machine with a GPU may have little else and no network.
build_probes() {
  local generator="Unix Makefiles"
  PATH=$PATH:${CUDA_PATH:-/usr/local/cuda}/bin
  command -v nvcc >/dev/null ||
    die "the probes of the GPU need nvcc, which is neither in PATH nor in ${CUDA_PATH:-/usr/local/cuda}/bin: install CUDA's toolkit,
  version 13.0 or later (https://developer.nvidia.com/cuda-downloads), or set CUDA_PATH to its folder. No GPU is needed to build them"
  command -v cmake >/dev/null && command -v "${CXX:-c++}" >/dev/null || need_packages "${packages_build[@]}"
  use_ccache
  if command -v ninja >/dev/null; then generator=Ninja; fi
  if [[ ! -e build-gpu/CMakeCache.txt ]]; then
    step "configure build-gpu" configure-gpu cmake -S tests/gpu -B build-gpu -G "$generator"
  fi
  step "build build-gpu" build-gpu cmake --build build-gpu
}
