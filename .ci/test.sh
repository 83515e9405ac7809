# Runs suites of tests and leaves each one's result in build/reports/SUITE.xml for .ci/report.py, which counts them.

reports=()

# Every suite is made to leave a new report: one that dies before it could is counted as a failure.
begin_suite() {
  mkdir -p build/reports
  rm -f "build/reports/$1.xml"
  reports+=("$1=build/reports/$1.xml")
}

# cpp_suite SUITE PRESET CTEST-ARGUMENT...: over `targets`, or over all that there are.
cpp_suite() {
  local suite=$1 preset=$2 folder=build run=()
  shift 2
  [[ $preset == release ]] || folder=build-$preset
  begin_suite "$suite"
  lock
  # shellcheck disable=SC2086  # a list of words
  configure_and_build "$preset" ${targets:-all tests}
  unlock
  rm -rf "build/reports/$suite"
  # The thread sanitizer of g++ 12 needs its shadow's addresses free, which a kernel that randomizes widely may take.
  [[ $preset != tsan ]] || ! setarch -R true 2>/dev/null || run=(setarch -R)
  try_step "test $suite" "test-$suite" env \
    ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1}" \
    UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}" \
    TSAN_OPTIONS="${TSAN_OPTIONS:-second_deadlock_stack=1}" \
    GTEST_OUTPUT="xml:$PWD/build/reports/$suite/" \
    "${run[@]}" ctest --test-dir "$folder" --output-junit "$PWD/build/reports/$suite.xml" --output-on-failure \
    --test-output-size-passed 16384 --test-output-size-failed 65536 \
    --parallel "$(nproc)" --timeout "${FCCL_TEST_TIMEOUT:-300}" "$@" || true
}

# torch_suite SUITE VERSION PYTEST-ARGUMENT...
torch_suite() {
  python_suite "$1" "$2" torch_backend/tests trainer/fsdp/tests "${@:3}"
}

# docs_suite: every command and program of the pages; needs what cpp_suite has built.
docs_suite() {
  python_suite docs "$torch_version" tests/docs
}

# tools_suite: programs of tools/ and perf_tests/ that are written in Python.
tools_suite() {
  python_suite tools "$torch_version" tests/tools perf_tests/tests "$@"
}

# cluster_suite SUITE PYTEST-ARGUMENT...: hosts that are network namespaces.
cluster_suite() {
  python_suite "$1" "$torch_version" tests/cluster "${@:2}"
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

# python_suite SUITE VERSION PYTEST-ARGUMENT...
python_suite() {
  local suite=$1 version=$2
  shift 2
  begin_suite "$suite"
  lock
  use_torch "$version"
  need_environment
  need_package
  unlock
  try_step "test $suite" "test-$suite" run_pytest --junitxml="build/reports/$suite.xml" "$@" || true
}

# A selector may choose none of the tests, pytest's status 5; the report knows whether there should have been some.
run_pytest() {
  local status=0
  OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} "$venv/bin/python" -m pytest --timeout "${FCCL_TEST_TIMEOUT:-300}" \
    -p no:cacheprovider "$@" || status=$?
  return $((status == 5 ? 0 : status))
}

# Says what ran; the last line it prints counts it all. Its status is that of ./dev test.
conclude() { python3 .ci/report.py "$@" "${reports[@]}"; }

test_every_change() {
  cpp_suite cpp release --label-exclude '^(slow|long)$'
  torch_suite torch "$torch_version" -m 'not slow'
  docs_suite
  tools_suite
  cluster_suite cluster -m 'not slow and not emulator'
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
  cluster_suite cluster -k "${1//|/ or }"
  conclude --any-number
}

# gtest_filter_of SELECTOR: a regular expression of plain words, ".*" and "|" as GoogleTest writes it.
gtest_filter_of() {
  local filter=${1//.\*/*}
  filter=${filter//[\^\$]/}
  echo "*${filter//|/*:*}*"
}
