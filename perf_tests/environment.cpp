// The one reader of the environment among the perf binaries.
#include "environment.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace fccl::perf {
namespace {

// Prefixes of the names that a report keeps. It leaves out other variables, which may hold secrets.
constexpr std::string_view kAboutRun[] = {"FCCL_",  "NCCL_TESTS_", "CUDA_", "OMPI_",  "PMI", "MPI",
                                          "HYDRA_", "I_MPI_",      "UCX_",  "SLURM_", "OMP_"};

constexpr std::string_view kSecret = "FCCL_TESTS_NETWORK_SECRET=";

}  // namespace

Environment read_environment(const std::function<const char*(const char*)>& find) {
  const auto value = [&](const char* name) {
    const char* text = find(name);
    return text && *text ? std::optional<std::string>(text) : std::nullopt;
  };
  const auto own_or_nccl = [&](const std::string& name) {
    const auto own = value(("FCCL_TESTS_" + name).c_str());
    return own ? own : value(("NCCL_TESTS_" + name).c_str());
  };
  return {.launcher = value("FCCL_TESTS_LAUNCHER"),
          .local = value("FCCL_TESTS_LOCAL"),
          .network = value("FCCL_TESTS_NETWORK"),
          .secret = value("FCCL_TESTS_NETWORK_SECRET"),
          .split = own_or_nccl("SPLIT"),
          .split_mask = own_or_nccl("SPLIT_MASK"),
          .min_bandwidth = own_or_nccl("MIN_BW"),
          .device = own_or_nccl("DEVICE"),
          .cuda_path = value("FCCL_CUDA_PATH"),
          .open_mpi_size = value("OMPI_COMM_WORLD_SIZE"),
          .pmi_size = value("PMI_SIZE"),
          .intel_mpi = value("I_MPI_HYDRA_UUID") ? value("I_MPI_HYDRA_UUID") : value("I_MPI_PMI_LIBRARY"),
          .pmix_rank = value("PMIX_RANK"),
          .pmix_space = value("PMIX_NAMESPACE"),
          .slurm_size = value("SLURM_STEP_NUM_TASKS"),
          .slurm_process = value("SLURM_PROCID"),
          .slurm_nodes = value("SLURM_STEP_NUM_NODES"),
          .slurm_job = value("SLURM_JOB_ID"),
          .slurm_step = value("SLURM_STEP_ID"),
          .slurm_port = value("SLURM_SRUN_COMM_PORT"),
          .about_run = {}};
}

Environment read_environment() {
  Environment found = read_environment([](const char* name) -> const char* { return std::getenv(name); });
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with(kSecret)) continue;
    if (std::any_of(std::begin(kAboutRun), std::end(kAboutRun), [&](auto start) { return text.starts_with(start); }))
      found.about_run.emplace_back(text);
  }
  std::sort(found.about_run.begin(), found.about_run.end());
  return found;
}

}  // namespace fccl::perf
