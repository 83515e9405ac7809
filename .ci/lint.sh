# Prepares what the checks need, compile commands and the library, and runs them.

lint() {
  lock
  need_packages "${packages_build[@]}" "${packages_test[@]}" "${packages_lint[@]}"
  start_beside need_environment
  configure_and_build release fccl
  await_beside
  # The build compiles sources together; here is how each is compiled by itself.
  step "configure build/lint" configure-lint cmake --preset release -B build/lint -DCMAKE_UNITY_BUILD=OFF -DFCCL_BUILD_TORCH=ON \
    -DPython3_EXECUTABLE="$PWD/$venv/bin/python"
  unlock
  "$venv/bin/python" .ci/lint.py "$@"
}
