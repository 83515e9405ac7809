// What a launcher library gives a perf binary: the processes of an mpirun, and MPI's own collectives to compare with.
//
// There is one library per MPI, libfccl_launch_openmpi.so, libfccl_launch_mpich.so and libfccl_launch_intelmpi.so, all built
// from the same source and loaded at run time, and libfccl_launch_local.so for processes that no MPI has started. So the
// binaries link no MPI, and one binary serves whichever mpirun started it.
#pragma once

#include <cstddef>

extern "C" {

// One call of a collective of MPI. Equal addresses where FCCL's rules for "in place" put them mean in place, with one
// difference: MPI_Reduce_scatter_block leaves its result at the start of the buffer, so there `recv` must equal `send`.
struct FcclPeerCall {
  int collective;  // fcclColl_t
  int datatype;    // fcclDataType_t
  int op;          // fcclRedOp_t
  int root;        // where there is one
  std::size_t count;
  const void* send;
  void* recv;
};

// The functions of one library. The main thread calls them, except `abort`, which any thread may.
struct FcclLauncher {
  // Enters MPI and tells which of how many processes this is; 0, or MPI's error code. `place` is what FCCL_TESTS_LOCAL says,
  // for processes that no MPI has started; else empty.
  int (*start)(bool many_threads, const char* place, int* process, int* processes);
  void (*finish)();
  void (*barrier)();
  // all[p] = process p's `bytes` bytes.
  void (*all_gather)(const void* own, std::size_t bytes, void* all);
  // Ends every process with this status.
  void (*abort)(int status);
  // The name and version of this MPI, one line.
  const char* (*version)();
  // Whether MPI has this collective for this type and operator.
  bool (*supports)(int collective, int datatype, int op);
  // 0, or MPI's error code.
  int (*call)(const FcclPeerCall* call);
};

// The one symbol that a launcher library exports.
const FcclLauncher* fccl_launcher();
constexpr char kLauncherSymbol[] = "fccl_launcher";
}
