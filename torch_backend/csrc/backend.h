// The process group backend "fccl": runs torch's collectives as calls of the library, on CPU memory and on a device's.
#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "bootstrap.h"
#include "cpu_calls.h"
#include "device_calls.h"
#include "estimate.h"
#include "operation.h"
#include "tensors.h"
#include "work.h"

namespace fccl::torch {

constexpr const char* kBackendName = "fccl";

// One rank's end of a process group, for the tensors of the CPU and of one device. Each has a communicator of its own, which is
// made at the first call or, if torch binds the group to a device, at once. Any thread may call it; calls of one kind of memory
// are served one at a time in the order of arrival, except abort and getError, which never wait for another call. After the
// first failure every call throws its cause; shutdown and abort still work. The destructor waits for no peer. If torch gives a
// method two names, only the older one is overridden: that compiles and is found from 2.11 to 2.15.
class Backend final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<std::vector<at::Tensor>>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  // `key` is the group's own in the store, which is read when a communicator is made.
  Backend(const Membership& membership, const c10::intrusive_ptr<c10d::Store>& store, const std::string& key);
  ~Backend() override;
  // Makes the communicator of the device at once.
  void connect(c10::Device device);

  const std::string getBackendName() const override { return kBackendName; }
  c10::intrusive_ptr<Options> getBackendOptions() override;
  bool supportsSplitting() const override { return true; }
  bool supportsCoalescing() const override { return true; }
  bool supportsTimeEstimation() const override { return true; }
  bool supportsShrinking() const override { return true; }
  // Between these calls, from torch 2.15 on, this thread's calls on CPU memory are not run; their time is estimated in
  // microseconds.
  void startTimeEstimate() { start_estimate(); }      // NOLINT(readability-identifier-naming): torch's
  float endTimeEstimate() { return end_estimate(); }  // NOLINT(readability-identifier-naming): torch's
  // True for CPU tensors; torch then asks with the index -1.
  bool supportsTensorAlloc(c10::DeviceIndex device) override { return device < 0; }
  at::Tensor allocateTensor(long count, at::TensorOptions options) override;  // NOLINT(google-runtime-int): torch's
  void setTimeout(std::chrono::milliseconds timeout) override;
  uint64_t getSequenceNumberForGroup() override { return sequence_; }
  void setSequenceNumberForGroup() override {}
  c10d::ErrorType getError() override;
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<Options>& options) override;
  // Makes a group of the surviving ranks, which alone call it; with the flag 1 (SHRINK_ABORT) also after a failure.
  c10::intrusive_ptr<c10d::Backend> shrink(const std::vector<int64_t>& excluded, int flags,
                                           const c10::intrusive_ptr<Options>& options) override;
#ifdef C10D_BACKEND_HAS_RECONFIGURE
  // Makes this group one of the ranks whose handles are given: by the library alone if they are in one communicator, even after
  // a failure, otherwise by torch's store. It is done when it returns. Only abort may run at the same time.
  bool supportsReconfigure() const override { return true; }
  c10d::ReconfigureHandle get_reconfigure_handle() const override;
  WorkPtr reconfigure(const c10d::ReconfigureOptions& options) override;
#endif
  void eagerConnectSingleDevice(at::Device device) override { connect(device); }
  void abort() override;
  void shutdown() override;

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;
  WorkPtr gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  // These exist from torch 2.15 on.
  WorkPtr gather_single(at::Tensor& output, at::Tensor& input, const c10d::GatherOptions& options);
  WorkPtr scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes,
                        std::vector<int64_t>& input_sizes, const c10d::AllToAllOptions& options) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;

  // Between these calls this thread's sends and receives are gathered. The end issues them together, and its work stands for
  // all.
  void startCoalescing() override;
  WorkPtr endCoalescing() override;

  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr send(Tensors& tensors, int destination, int tag) override;
  WorkPtr recv(Tensors& tensors, int source, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

 private:
  // Runs the operation where its tensors are, and returns the work that stands for it.
  WorkPtr run(Operation operation);
  // Runs a send or a receive, or gathers it.
  WorkPtr run_or_gather(Operation operation);
  // Notes the work of another call that is issued while this thread gathers.
  void note(const WorkPtr& work) const;
  std::chrono::milliseconds deadline_of(const Operation& operation) const;
  Describe describe();

  // Each adds one call of the library, and its staging, to the operation. The tensors of a list hold the ranks' parts in order:
  // one tensor per rank, or one in all. Tensors may have any strides.
  void add_allreduce(Operation& operation, const at::Tensor& tensor, const c10d::ReduceOp& op) const;
  void add_allgather(Operation& operation, const Tensors& outputs, const at::Tensor& input) const;
  void add_reduce_scatter(Operation& operation, const at::Tensor& output, const Tensors& inputs,
                          const c10d::ReduceOp& op) const;
  // Gathers into the operation's outputs, which only the root has.
  void add_gather(Operation& operation, const at::Tensor& input, int root) const;
  // Gathers integers, counts[r] of rank r, in the order of ranks, before it returns.
  at::Tensor gather_now(const at::Tensor& input, const std::vector<int64_t>& counts, std::chrono::milliseconds timeout);
  // Do so for lists of tensors of unequal sizes.
  void add_allgather_v(Operation& operation, const Tensors& outputs, const at::Tensor& input) const;
  void add_reduce_scatter_v(Operation& operation, const at::Tensor& output, const Tensors& inputs,
                            const c10d::ReduceOp& op) const;

  const std::string name_;
  const std::string first_key_;  // in the store
  const std::string word_;       // the word of its handle, which no other rank has
  std::atomic<uint64_t> sequence_ = 0;
  std::atomic<uint64_t> monitored_barriers_ = 0;
  std::atomic<std::chrono::milliseconds> timeout_;  // timeout of calls that set none
  const std::shared_ptr<CpuCalls> cpu_;
  const std::shared_ptr<DeviceCalls> device_;
  // The last split: torch asks for it once for each kind of memory. Both turns guard it.
  c10::intrusive_ptr<c10d::Store> split_store_;
  std::vector<int> split_ranks_;
  c10::weak_intrusive_ptr<c10d::Backend> split_child_;
  std::set<int64_t> uuids_;  // ids of every reconfigure so far; both turns guard it
};

}  // namespace fccl::torch
