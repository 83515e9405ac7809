# Prepares what the checks need, compile commands and the library, and runs them.

lint() {
  lock
  need_packages "${packages_build[@]}" "${packages_test[@]}" "${packages_lint[@]}"
  need_environment
  need_package
  configure_and_build release fccl
  unlock
  "$venv/bin/python" .ci/lint.py "$@"
}
