# Runs what takes too long for every change: random faults, fuzzers, mutants, a GPU's sums, and measurements against the peers.

# number_after OPTION DEFAULT ARGUMENT...: the number that follows the one option there may be.
number_after() {
  local option=$1 default=$2
  shift 2
  if (($# == 0)); then
    echo "$default"
  elif [[ $# == 2 && $1 == "$option" && $2 =~ ^[1-9][0-9]*$ ]]; then
    echo "$2"
  else
    die "this campaign takes $option N, but got '$*'"
  fi
}

campaign_faults() {
  local seeds
  seeds=$(number_after --seeds 100 "$@")
  lock
  configure_and_build release faults hosts_test
  unlock
  build/tests/faults/faults --seeds "$seeds"
  FCCL_TEST_KILLS=$((2 * seeds)) build/tests/processes/hosts_test --gtest_filter='KillCampaign.*'
}

# Ranks of trainer.ddp and trainer.replicas are killed, so often by each rendezvous and in replicas of each number and size.
campaign_kills() {
  local kills
  kills=$(number_after --each 5 "$@")
  fetch_etcd
  lock
  need_environment
  need_package
  unlock
  FCCL_TEST_KILLS=$kills run_pytest -m slow -rP --tb=short trainer/ddp/tests/test_kills.py trainer/replicas/tests/test_kill.py
}

# Each fuzzer for so long, one after the other; what they learn stays in build-fuzz/fuzz.
campaign_fuzz() {
  local seconds
  seconds=$(number_after --seconds 600 "$@")
  lock
  need_packages "${packages_fuzz[@]}"
  configure_and_build fuzz fuzzers
  unlock
  tests/fuzz/campaign.sh build-fuzz "$seconds"
}

campaign_mutants() {
  (($# == 0)) || die "the mutants take no arguments, but got '$*'"
  lock
  need_packages "${packages_build[@]}" "${packages_test[@]}"
  unlock
  use_ccache
  python3 tests/mutants/run.py
}

# A GPU's sums: the bits of their arithmetic, on so many elements of any bits for each, and what nvcc makes of them. Needs no GPU.
campaign_gpu_kernels() {
  local tuples shard environment=.venv-disassembler running=()
  tuples=$(number_after --tuples 10000000 "$@")
  lock
  configure_and_build release kernels_test
  # CUDA's toolkit need not have them; tests/gpu/sum_kernels.py says what it leaves out without them.
  (need_environment_of disassembler "$environment" tests/gpu/requirements.txt "shows instructions of a GPU") || true
  unlock
  for ((shard = 0; shard < $(nproc); ++shard)); do
    env GTEST_TOTAL_SHARDS="$(nproc)" GTEST_SHARD_INDEX="$shard" FCCL_TEST_TUPLES="$tuples" \
      build/tests/unit/kernels_test --gtest_filter='*GpuSum*' --gtest_brief=1 &
    running+=($!)
  done
  for shard in "${running[@]}"; do wait "$shard" || die "the sums of a GPU have not the bits of src/kernels"; done
  python3 tests/gpu/sum_kernels.py --tools "$(echo "$environment"/lib/python3*/site-packages/nvidia/cu13/bin)"
}

campaign_attack() {
  lock
  configure_and_build release fccl fccl_ofi victim outsider
  unlock
  [[ -n $(command -v ip) && -n $(command -v tc) ]] || need_packages "${packages_cluster[@]}"
  python3 tests/attack/campaign.py "$@"
}

# bench [fsdp] ARGUMENT...
bench() {
  if [[ ${1:-} != fsdp ]] && asks_for_help "$@"; then exec python3 perf_tests/compare.py "$@"; fi
  lock
  if [[ ${1:-} == fsdp ]]; then
    need_environment
    need_package
    unlock
    exec "$venv/bin/python" -m torch.distributed.run --standalone --nproc-per-node 2 \
      torch_backend/benchmarks/fsdp_step.py "${@:2}"
  fi
  configure_and_build release
  [[ " $* " != *" --plot"* ]] || need_environment
  unlock
  exec env PATH="$PWD/$venv/bin:$PATH" python3 perf_tests/compare.py "$@"
}
