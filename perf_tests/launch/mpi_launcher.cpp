// A launcher library: compiled once for each MPI that is installed.
#include <mpi.h>
#include <sched.h>

#include <cstring>

#include "launch/launcher.h"
#include "peers/mpi_collectives.h"

namespace {

int start(bool many_threads, const char*, int* process, int* processes) {
  // With one thread per process MPI is told not to lock, so that it is measured at its best. With more, a thread that fails
  // aborts while another may be in a barrier.
  int provided = 0;
  if (const int error = MPI_Init_thread(nullptr, nullptr, many_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &provided))
    return error;
  if (const int error = MPI_Comm_rank(MPI_COMM_WORLD, process)) return error;
  return MPI_Comm_size(MPI_COMM_WORLD, processes);
}

void finish() { MPI_Finalize(); }

// Lets other processes run while it waits: MPICH does not, and with more processes than cores each meeting would take as long
// as the kernel lets a process run.
void wait(MPI_Request request) {
  for (int done = 0; !done;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done) sched_yield();
  }
}

void barrier() {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  wait(request);
}

void all_gather(const void* own, std::size_t bytes, void* all) {
  const int count = static_cast<int>(bytes);
  MPI_Request request;
  MPI_Iallgather(own, count, MPI_BYTE, all, count, MPI_BYTE, MPI_COMM_WORLD, &request);
  wait(request);
}

void abort(int status) { MPI_Abort(MPI_COMM_WORLD, status); }

const char* version() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  text[std::strcspn(text, ",\n")] = '\0';
  for (char* tab = std::strchr(text, '\t'); tab; tab = std::strchr(tab, '\t')) *tab = ' ';
  return text;
}

constexpr FcclLauncher kLauncher{.start = start,
                                 .finish = finish,
                                 .barrier = barrier,
                                 .all_gather = all_gather,
                                 .abort = abort,
                                 .version = version,
                                 .supports = fccl::perf::mpi_supports,
                                 .call = fccl::perf::mpi_call};

}  // namespace

extern "C" __attribute__((visibility("default"))) const FcclLauncher* fccl_launcher() { return &kLauncher; }
