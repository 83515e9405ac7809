// Operators in C++, a part of fccl.hpp: the built-in ones, and those that a communicator makes.
#pragma once

#include <fccl/fccl.h>

#include <atomic>
#include <memory>
#include <utility>

namespace fccl {

// Says how the values of the ranks become one.
enum class Op : int {
  sum = fcclSum,
  prod = fcclProd,
  max = fcclMax,
  min = fcclMin,
  avg = fcclAvg,
  band = fcclBand,
  bor = fcclBor,
  bxor = fcclBxor
};
using enum Op;

inline fcclRedOp_t handle_of(Op op) { return static_cast<fcclRedOp_t>(op); }

// The communicator's C handle; null once it has been aborted. Shared so that operators can see whether it still lives.
struct CommunicatorHandle {
  explicit CommunicatorHandle(fcclComm_t comm) : comm(comm) {}
  CommunicatorHandle(const CommunicatorHandle&) = delete;
  CommunicatorHandle& operator=(const CommunicatorHandle&) = delete;
  ~CommunicatorHandle() {
    if (fcclComm_t left = comm.exchange(nullptr)) static_cast<void>(fcclCommDestroy(left));
  }

  std::atomic<fcclComm_t> comm;
};

// An operator that multiplies this rank's input by a scalar and then sums; made by Communicator::pre_multiplied_sum. Move only;
// the ranks make and destroy theirs in the same order, on the thread that uses the communicator. It cannot be used once the
// communicator is gone.
class PreMulSum {
 public:
  PreMulSum(std::weak_ptr<CommunicatorHandle> handle, Op op) : handle_(std::move(handle)), op_(op) {}
  PreMulSum(PreMulSum&&) = default;
  ~PreMulSum() {
    const auto handle = handle_.lock();
    if (fcclComm_t comm = handle ? handle->comm.load() : nullptr) static_cast<void>(fcclRedOpDestroy(handle_of(op_), comm));
  }
  operator Op() const { return op_; }

 private:
  std::weak_ptr<CommunicatorHandle> handle_;
  Op op_;
};

}  // namespace fccl
