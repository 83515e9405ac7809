# Runs every suite for ./dev test all, or a part of them.

# Each suite and the minutes that it takes on two cores, the longest first.
all_suites=(
  long-alone:55 long-hosts:35 long:33 asan:25 tsan:20 torch-slow:10 torch-2.11.0:10 torch-2.15.0:10 frameworks:14 elastic:12
  release:25
  sagemaker:8 cpp:5 cluster-slow:5 slow:4 torch:4 cpp-trainer:3 cluster:3 frames:6 launchers:3 slurm:7 dashboards:4 kubernetes:6 containers:3 docs:2 tools:2
  site:2
)

run_suite() {
  case $1 in
    asan | tsan) FCCL_TEST_TIMEOUT=900 cpp_suite "$1" "$1" --label-regex '^quick$' ;;
    cpp) fetch_cuda_headers && cpp_suite cpp release --label-exclude '^(slow|long)$' ;;
    frames) frames_suite ;;
    slow) FCCL_TEST_TIMEOUT=900 cpp_suite slow release --label-regex '^slow$' ;;
    # Ten minutes each.
    long-alone) long_suite "$1" --tests-regex "${random_calls}_[0-9]_for_long" ;;
    long-hosts) long_suite "$1" --tests-regex "${random_calls}_hosts" ;;
    long) long_suite "$1" --exclude-regex "$random_calls" ;;
    torch) torch_suite torch "$pinned_torch" -m 'not slow' ;;
    torch-slow) fetch_prometheus && FCCL_TEST_TIMEOUT=3600 torch_suite torch-slow "$pinned_torch" -m slow ;;
    torch-*) FCCL_TEST_TIMEOUT=1500 also=:sagemaker/tests torch_suite "$1" "${1#torch-}" -m 'not slow or every_torch' ;;
    cpp-trainer) cpp_trainer_suite ;;
    frameworks) FCCL_TEST_TIMEOUT=900 frameworks_suite ;;
    launchers) launchers_suite ;;
    sagemaker) FCCL_TEST_TIMEOUT=900 python_suites "$torch_version" sagemaker=sagemaker/tests -- ;;
    docs | tools | elastic | dashboards | containers | release | site) "$1_suite" ;;
    # A run of ./dev efa may take 360 s, a Kubernetes with two jobs one after the other 500 s.
    slurm | kubernetes) FCCL_TEST_TIMEOUT=900 "$1_suite" ;;
    cluster) cluster_suite cluster -m 'not slow and not slurm' ;;
    cluster-slow) FCCL_TEST_TIMEOUT=3600 cluster_suite cluster-slow -m slow ;;
  esac
}

random_calls=random_calls_agree_with_mpi_on

# The Debug build has the adapter to torch here.
frames_suite() {
  lock
  need_packages "${packages_build[@]}" "${packages_test[@]}"
  need_environment
  use_ccache
  step "configure build-debug with torch" configure-debug \
    cmake --preset debug -DFCCL_BUILD_TORCH=ON -DPython3_EXECUTABLE="$PWD/$venv/bin/python"
  unlock
  targets="frames_test torch_frames_test" cpp_suite frames debug --label-regex '^frames$'
}

long_suite() { FCCL_TEST_TIMEOUT=3600 cpp_suite "$1" release --label-regex '^long$' --parallel 1 "${@:2}"; }

# part_of_all I N: the suites of part I of N, one "NAME:MINUTES" a line. Each suite goes to the part that has the least to do yet.
part_of_all() {
  local wanted=$1 count=$2 suite part least minutes=()
  for suite in "${all_suites[@]}"; do
    least=0
    for ((part = 1; part < count; ++part)); do
      ((${minutes[part]:-0} >= ${minutes[least]:-0})) || least=$part
    done
    minutes[least]=$((${minutes[least]:-0} + ${suite#*:}))
    ((least != wanted - 1)) || echo "$suite"
  done
}

# suites_named NAME[,NAME...]: each as "NAME:MINUTES", a line each.
suites_named() {
  local name
  for name in ${1//,/ }; do
    printf '%s\n' "${all_suites[@]}" | grep "^$name:" || die "there is no suite '$name': ${all_suites[*]%%:*}"
  done
}

# test_all [--part I/N | --suites NAME[,NAME...]]
test_all() {
  local part=${2:-1/1} suites suite minutes=0
  if [[ $# == 2 && $1 == --suites ]]; then
    suites=$(suites_named "$part")
  else
    [[ $# == 0 || ($# == 2 && $1 == --part && $part =~ ^[1-9][0-9]*/[1-9][0-9]*$ && ${part%/*} -le ${part#*/}) ]] ||
      die "test all takes --part I/N with I from 1 to N, --suites NAME,..., or nothing, but got '$*'"
    suites=$(part_of_all "${part%/*}" "${part#*/}")
  fi
  [[ -n $suites ]] || die "there are only ${#all_suites[@]} suites: part $part would have none"
  for suite in $suites; do minutes=$((minutes + ${suite#*:})); done
  say "$part of everything: $(printf '%s ' $suites | sed 's/:[0-9]*//g')- about $minutes minutes on two cores"
  for suite in $suites; do run_suite "${suite%:*}"; done
  conclude
}
