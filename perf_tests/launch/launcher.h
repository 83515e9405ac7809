// The functions that a launcher library gives a perf binary: the processes of an mpirun, and MPI's own collectives to compare
// with.
//
// There is one library per MPI, libfccl_launch_openmpi.so, libfccl_launch_mpich.so and libfccl_launch_intelmpi.so, all built
// from the same source and loaded at run time. libfccl_launch_local.so and libfccl_launch_network.so are for processes that no
// MPI has started. So the binaries link no MPI, and one binary works under any mpirun.
#pragma once

#include <cstddef>

extern "C" {

// One call of a collective of MPI. If the addresses are equal where FCCL allows "in place", the call is in place, with one
// difference: MPI_Reduce_scatter_block leaves its result at the start of the buffer, so there `recv` must equal `send`.
struct FcclPeerCall {
  int collective;  // fcclColl_t
  int datatype;    // fcclDataType_t
  int op;          // fcclRedOp_t
  int root;        // only for collectives that have one
  std::size_t count;
  const void* send;
  void* recv;
};

// The functions of one library. Only the main thread calls them, except `abort`, which any thread may call.
struct FcclLauncher {
  // Enters MPI and sets this process's number and the number of processes; returns 0, or MPI's error code. `place` is the value
  // of FCCL_TESTS_LOCAL, or of FCCL_TESTS_NETWORK with its secret, for processes that no MPI has started; otherwise it is
  // empty.
  int (*start)(bool many_threads, const char* place, int* process, int* processes);
  void (*finish)();
  void (*barrier)();
  // Sets all[p] to process p's `bytes` bytes.
  void (*all_gather)(const void* own, std::size_t bytes, void* all);
  // Ends every process with this status.
  void (*abort)(int status);
  // Returns the name and version of this MPI, in one line.
  const char* (*version)();
  // Returns whether MPI has this collective for this type and operator.
  bool (*supports)(int collective, int datatype, int op);
  // Returns 0, or MPI's error code.
  int (*call)(const FcclPeerCall* call);
};

// The one symbol that a launcher library exports.
const FcclLauncher* fccl_launcher();
constexpr char kLauncherSymbol[] = "fccl_launcher";
}
