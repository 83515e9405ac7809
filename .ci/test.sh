# Runs suites of tests and leaves each one's results in build/reports/SUITE*.xml for .ci/report.py, which counts them and holds them
# against SUITE*.expected beside them.

reports=()

# begin_suite SUITE [FILE]: every suite is made to leave a new report; one that dies before it could is counted as a failure.
begin_suite() {
  local file=build/reports/${2:-$1}.xml
  mkdir -p build/reports
  rm -f "$file" "${file%.xml}.expected"
  reports+=("$1=$file")
}

# expect ctest|pytest NAME ARGUMENT...: writes down what the report NAME must hold. Where that fails, the report says so.
expect() { python3 .ci/expected.py "$1" "build/reports/$2.expected" "${@:3}" || true; }

# cpp_suite SUITE PRESET CTEST-ARGUMENT...: over `targets`, or over all that there are.
cpp_suite() {
  local suite=$1 preset=$2 folder=build run=() at_once
  shift 2
  # Ranks wait more than they compute, unless a sanitizer makes them slow.
  at_once=$(($(nproc) + 2))
  [[ $preset == release ]] || { folder=build-$preset && at_once=$(nproc); }
  begin_suite "$suite"
  lock
  # shellcheck disable=SC2086  # a list of words
  configure_and_build "$preset" ${targets:-all tests}
  unlock
  rm -rf "build/reports/$suite"
  expect ctest "$suite" "$folder" "${targets:-}" "$@"
  # The thread sanitizer of g++ 12 needs its shadow's addresses free, which a kernel that randomizes widely may take.
  [[ $preset != tsan ]] || ! setarch -R true 2>/dev/null || run=(setarch -R)
  try_step "test $suite" "test-$suite" env \
    ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1}" \
    UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}" \
    TSAN_OPTIONS="${TSAN_OPTIONS:-second_deadlock_stack=1}" \
    GTEST_OUTPUT="xml:$PWD/build/reports/$suite/" \
    "${run[@]}" ctest --test-dir "$folder" --output-junit "$PWD/build/reports/$suite.xml" --output-on-failure \
    --test-output-size-passed 16384 --test-output-size-failed 65536 \
    --parallel "$at_once" --timeout "${FCCL_TEST_TIMEOUT:-300}" "$@" || true
}

# cuda_races_suite: calls on CUDA memory under the thread sanitizer, which is what finds an order that is missing, and that it
# does. A part: ./dev test all has the whole.
cuda_races_suite() {
  targets='cuda_collectives_test hidden_race' cpp_suite cuda-races tsan --tests-regex \
    '^By/Cuda(Collectives|EndEvent|Staged|Waiting)\.|^a_queue_that_(awaits_what|reads_what)_another_wrote'
}

# torch_suite SUITE VERSION PYTEST-ARGUMENT...; `also` may name more folders, each behind a colon.
torch_suite() {
  lock
  configure_and_build release gpus_for_python
  unlock
  fetch_etcd
  python_suites "$2" "$1=torch_backend/tests" "$1=trainer/fsdp/tests" "$1=trainer/finetune/tests${also:-}" -- "${@:3}"
}

# cpp_trainer_suite: trainer/cpp, and trainer/fsdp beside it.
cpp_trainer_suite() {
  lock
  build_cpp_trainer
  unlock
  python_suites "$torch_version" cpp-trainer=trainer/cpp/tests --
}

# frameworks_suite: other projects' frameworks, each trained through fccl and through Gloo.
frameworks_suite() {
  local venv=$venv
  begin_suite frameworks
  lock
  use_torch "$pinned_torch"
  need_environment
  need_package
  need_frameworks
  unlock
  venv=$frameworks_venv
  expect pytest frameworks torch_backend/frameworks/tests --
  try_step "test frameworks" test-frameworks run_pytest torch_backend/frameworks/tests --junitxml=build/reports/frameworks.xml || true
}

# elastic_suite: jobs whose ranks and hosts are killed. The charts measure times, so they have the machine to themselves.
elastic_suite() {
  fetch_etcd
  python_suites "$torch_version" elastic=trainer/ddp/tests elastic=trainer/replicas/tests elastic=tests/aws -- -m slow
  python_suites "$torch_version" scaling=trainer/scaling/tests -- -m slow
}

# docs_suite: every command and program of the pages; needs what cpp_suite has built.
docs_suite() {
  python_suites "$torch_version" docs=tests/docs --
}

# tools_suite: programs of tools/ and perf_tests/ that are written in Python.
tools_suite() {
  python_suites "$torch_version" tools=tests/tools tools=perf_tests/tests -- "$@"
}

# launchers_suite: every perf binary under every launcher, a Slurm and Intel MPI among them.
launchers_suite() {
  fetch_intel_mpi
  lock
  need_packages "${packages_launchers[@]}"
  need_packages "${packages_build[@]}" "${packages_test[@]}"
  use_ccache
  # A folder that was configured before Intel MPI was there does not know it.
  step "configure build" configure-release cmake --preset release
  configure_and_build release
  unlock
  python_suites "$torch_version" launchers=tests/launchers --
}

# cluster_suite SUITE PYTEST-ARGUMENT...: hosts that are network namespaces.
cluster_suite() {
  python_suites "$torch_version" "$1=tests/cluster" -- "${@:2}"
}

# containers_suite: the images of deploy/containers but the one with torch, which takes 5 GB.
containers_suite() {
  source .ci/image.sh
  lock
  need_environment
  fetch_hadolint
  unlock
  if ((EUID == 0)); then
    image etcd
    image tests
  fi
  python_suites "$torch_version" containers=tests/containers --
}

# kubernetes_suite: the jobs of deploy/kubernetes on a live one. It wants root, and the tests say so where that is not.
kubernetes_suite() {
  fetch_kubernetes_schemas
  ((EUID != 0)) || prepare_kubernetes
  python_suites "$torch_version" kubernetes=tests/kubernetes --
}

# dashboards_suite PYTEST-ARGUMENT...: the files of deploy/metrics under a live Prometheus.
dashboards_suite() {
  fetch_prometheus
  lock
  configure_and_build release
  unlock
  python_suites "$torch_version" dashboards=tests/dashboards -- "$@"
}

# release_suite: ./dev release from two folders, and what it makes with the oldest, the pinned and the newest torch.
release_suite() {
  local version
  source .ci/release.sh
  lock
  need_release_environment
  for version in "${other_torch_versions[@]}"; do
    use_torch "$version"
    need_environment
  done
  unlock
  FCCL_TEST_TIMEOUT=7200 python_suites "$pinned_torch" release=tests/release --
}

# site_suite: the site that ./dev docs makes, in a browser, too.
site_suite() {
  local venv
  source .ci/docs.sh
  docs
  lock
  need_packages "${packages_site_test[@]}"
  unlock
  venv=$site_venv
  begin_suite site
  expect pytest site tests/site --
  try_step "test site" test-site run_pytest tests/site --junitxml=build/reports/site.xml || true
}

# slurm_suite: a Slurm on such hosts, and the jobs of deploy/slurm in it.
slurm_suite() {
  lock
  need_packages "${packages_slurm[@]}"
  configure_and_build release
  unlock
  cluster_suite slurm -m slurm
}

# emulator_suite: the hosts themselves, unless they are as they were when they last passed.
emulator_suite() {
  local passed=build/reports/emulator.passed sources
  sources=$(find tools/cluster tests/cluster -name '*.py' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum)
  if [[ -e $passed && $(<"$passed") == "$sources" ]]; then
    say "  ✓ test emulator: unchanged since it passed"
    return
  fi
  rm -f "$passed"
  cluster_suite emulator -m emulator
  ! python3 .ci/report.py "${reports[-1]}" >/dev/null || echo "$sources" >"$passed"
}

# python_suites VERSION SUITE=FOLDER... -- PYTEST-ARGUMENT...: the tests of each folder, in all folders at once, since ranks wait
# more than they compute. Folders of one suite count together; those that a colon joins share a process.
python_suites() {
  local version=$1 folders=() names=() each
  shift
  while [[ $1 != -- ]]; do
    folders+=("$1")
    [[ " ${names[*]} " == *" ${1%%=*} "* ]] || names+=("${1%%=*}")
    begin_suite "${1%%=*}" "$(report_of "$1")"
    shift
  done
  # shellcheck disable=SC2046  # folders that colons join
  for each in "${folders[@]}"; do
    expect pytest "$(report_of "$each")" $(tr : ' ' <<<"${each#*=}") "$@"
  done
  lock
  use_torch "$version"
  need_environment
  need_package
  unlock
  try_step "test ${names[*]}" "test-${names[0]}" run_at_once "${folders[@]}" "$@" || true
}

# report_of SUITE=FOLDER: the name of the report of these tests.
report_of() { echo "${1//[=\/:]/-}"; }

# run_at_once SUITE=FOLDER... -- PYTEST-ARGUMENT...
run_at_once() {
  local folders=() running=() paths=() status=0 each
  while [[ $1 != -- ]]; do
    folders+=("$1")
    shift
  done
  for each in "${folders[@]}"; do
    IFS=: read -ra paths <<<"${each#*=}"
    run_pytest "${paths[@]}" --junitxml="build/reports/$(report_of "$each").xml" "${@:2}" &
    running+=($!)
  done
  for each in "${running[@]}"; do wait "$each" || status=$?; done
  return "$status"
}

# Ctrl-C must reach it, which a command that a script starts beside itself would not hear. A selector may choose none of the tests,
# pytest's status 5; the report knows whether there should have been some.
run_pytest() {
  local status=0
  env --default-signal=INT OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" "$venv/bin/python" -m pytest \
    --timeout "${FCCL_TEST_TIMEOUT:-300}" -p no:cacheprovider "$@" || status=$?
  return $((status == 5 ? 0 : status))
}

# Says what ran; the last line it prints counts it all. Its status is that of ./dev test.
conclude() { python3 .ci/report.py "$@" "${reports[@]}"; }

test_every_change() {
  fetch_cuda_headers
  cpp_suite cpp release --label-exclude '^(slow|long)$'
  cuda_races_suite
  fetch_etcd
  fetch_prometheus
  fetch_kubernetes_schemas
  python_suites "$torch_version" torch=torch_backend/tests torch=trainer/fsdp/tests \
    torch=trainer/finetune/tests:trainer/ddp/tests:trainer/scaling/tests:trainer/replicas/tests:sagemaker/tests:tests/aws \
    docs=tests/docs tools=tests/tools tools=perf_tests/tests tools=tests/dashboards tools=tests/containers \
    tools=tests/kubernetes tools=tests/release tools=tests/site -- -m 'not slow'
  cluster_suite cluster -m 'not slow and not slurm and not emulator'
  emulator_suite
  conclude
}

test_quick() {
  cpp_suite quick release --label-regex '^quick$'
  conclude
}

test_torch() {
  torch_suite torch "$torch_version" -m 'not slow'
  conclude
}

# test_selected SELECTOR: the C++ tests whose names match the regular expression and the Python tests whose names contain it,
# long ones too.
test_selected() {
  cpp_suite cpp release --tests-regex "$1" --no-tests=ignore
  GTEST_FILTER=$(gtest_filter_of "$1") cpp_suite programs release --label-regex '^program$'
  torch_suite torch "$torch_version" -k "${1//|/ or }"
  tools_suite -k "${1//|/ or }"
  dashboards_suite -k "${1//|/ or }"
  python_suites "$torch_version" release=tests/release site=tests/site -- -m 'not slow' -k "${1//|/ or }"
  cluster_suite cluster -k "${1//|/ or }"
  conclude --any-number
}

# gtest_filter_of SELECTOR: a regular expression of plain words, ".*" and "|" as GoogleTest writes it.
gtest_filter_of() {
  local filter=${1//.\*/*}
  filter=${filter//[\^\$]/}
  echo "*${filter//|/*:*}*"
}
