# Prepares what the checks need, compile commands and the library, and runs them.

# lint [--all] [--fix] [--quick]: with --quick nothing is installed or built, and the checks that compile are left out.
lint() {
  if [[ " $* " == *" --quick "* ]]; then
    [[ -x $venv/bin/ruff ]] || die "there is no $venv with what the checks need: run ./dev lint once"
    exec env PATH="$PWD/$venv/bin:$PATH" "$venv/bin/python" .ci/lint.py "$@"
  fi
  lock
  need_packages "${packages_build[@]}" "${packages_test[@]}" "${packages_lint[@]}"
  start_beside need_environment
  configure_and_build release fccl
  await_beside
  configure_for_readers -DFCCL_BUILD_TORCH=ON -DPython3_EXECUTABLE="$PWD/$venv/bin/python"
  unlock
  "$venv/bin/python" .ci/lint.py "$@"
}
