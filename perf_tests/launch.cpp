// Meets over MPI and, inside a process, over a barrier of its threads.
#include "launch.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

namespace fccl::perf {
namespace {

// The processor's name as the kernel gives it; empty where it gives none.
std::string processor_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

double combine_values(const std::vector<double>& values, Combine how) {
  double result = values.front();
  for (auto value = values.begin() + 1; value != values.end(); ++value) {
    switch (how) {
      case Combine::first:
        break;
      case Combine::minimum:
        result = std::min(result, *value);
        break;
      case Combine::maximum:
        result = std::max(result, *value);
        break;
      case Combine::mean:
      case Combine::sum:
        result += *value;
    }
  }
  return result;
}

double combine_processes(double value, Combine how) {
  double result = value;
  if (how == Combine::first) {
    MPI_Bcast(&result, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  } else {
    const MPI_Op op = how == Combine::minimum ? MPI_MIN : how == Combine::maximum ? MPI_MAX : MPI_SUM;
    MPI_Allreduce(&value, &result, 1, MPI_DOUBLE, op, MPI_COMM_WORLD);
  }
  return result;
}

}  // namespace

Mpi::Mpi(int& argc, char**& argv) {
  // MULTIPLE: a thread that fails aborts while thread 0 may be in a barrier.
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &process_);
  MPI_Comm_size(MPI_COMM_WORLD, &processes_);
}

Mpi::~Mpi() { MPI_Finalize(); }

void Mpi::share(fcclUniqueId& id) const { MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD); }

void Mpi::abort(ExitCode code) const {
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, static_cast<int>(code));
  std::_Exit(static_cast<int>(code));
}

Team::Team(const Mpi& mpi, int threads)
    : mpi_(mpi), threads_(threads), meet_(threads), values_(static_cast<std::size_t>(threads)) {}

void Team::barrier(int thread) {
  meet_.arrive_and_wait();
  if (thread == 0) MPI_Barrier(MPI_COMM_WORLD);
  meet_.arrive_and_wait();
}

double Team::combine(int thread, double value, Combine how) {
  values_[static_cast<std::size_t>(thread)] = value;
  meet_.arrive_and_wait();
  if (thread == 0) {
    combined_ = combine_processes(combine_values(values_, how), how);
    if (how == Combine::mean) combined_ /= ranks();
  }
  meet_.arrive_and_wait();
  return combined_;
}

std::vector<RankInfo> Team::introduce() const {
  std::vector<RankInfo> own(static_cast<std::size_t>(threads_));
  for (int thread = 0; thread < threads_; ++thread) {
    RankInfo& info = own[static_cast<std::size_t>(thread)];
    info.rank = rank(thread);
    info.process_id = getpid();
    gethostname(info.host, sizeof info.host - 1);
    std::snprintf(info.processor, sizeof info.processor, "%s", processor_name().c_str());
  }
  const int bytes = static_cast<int>(own.size() * sizeof(RankInfo));
  std::vector<RankInfo> all(mpi_.process() == 0 ? static_cast<std::size_t>(ranks()) : 0);
  MPI_Gather(own.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  return mpi_.process() == 0 ? all : own;
}

std::size_t memory_per_rank(int ranks) {
  const auto pages = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES));
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return pages / 2 / static_cast<std::size_t>(ranks) * page;
}

}  // namespace fccl::perf
