// The environment of the perf binaries: their own settings, and how many processes were started together, and by which
// launcher.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fccl::perf {

// The variables as they are; an absent variable is empty. A variable NCCL_TESTS_* stands for its FCCL_TESTS_* where that is
// absent.
struct Environment {
  std::optional<std::string> launcher;       // FCCL_TESTS_LAUNCHER
  std::optional<std::string> local;          // FCCL_TESTS_LOCAL, for processes that no mpirun started
  std::optional<std::string> network;        // FCCL_TESTS_NETWORK, for such processes on several hosts
  std::optional<std::string> secret;         // FCCL_TESTS_NETWORK_SECRET, which these show each other
  std::optional<std::string> split;          // FCCL_TESTS_SPLIT
  std::optional<std::string> split_mask;     // FCCL_TESTS_SPLIT_MASK
  std::optional<std::string> min_bandwidth;  // FCCL_TESTS_MIN_BW
  std::optional<std::string> device;         // FCCL_TESTS_DEVICE
  std::optional<std::string> cuda_path;      // FCCL_CUDA_PATH, a setting of the library
  std::optional<std::string> open_mpi_size;  // OMPI_COMM_WORLD_SIZE, from Open MPI's mpirun
  std::optional<std::string> pmi_size;       // PMI_SIZE, from Hydra: MPICH and Intel MPI
  std::optional<std::string> intel_mpi;      // I_MPI_HYDRA_UUID, from Intel MPI's Hydra, or I_MPI_PMI_LIBRARY, under srun
  std::optional<std::string> pmix_rank;      // PMIX_RANK, from srun --mpi=pmix and others
  std::optional<std::string> pmix_space;     // PMIX_NAMESPACE
  std::optional<std::string> slurm_size;     // SLURM_STEP_NUM_TASKS, from srun; a batch script has only SLURM_NTASKS
  std::optional<std::string> slurm_process;  // SLURM_PROCID
  std::optional<std::string> slurm_nodes;    // SLURM_STEP_NUM_NODES
  std::optional<std::string> slurm_job;      // SLURM_JOB_ID
  std::optional<std::string> slurm_step;     // SLURM_STEP_ID
  std::optional<std::string> slurm_port;     // SLURM_SRUN_COMM_PORT, of this srun
  std::vector<std::string> about_run;        // NAME=VALUE of every variable that may affect a run, for the JSON file
};

Environment read_environment();
// Reads the variables from another source than this process; `find` returns null for an absent variable.
Environment read_environment(const std::function<const char*(const char*)>& find);

}  // namespace fccl::perf
