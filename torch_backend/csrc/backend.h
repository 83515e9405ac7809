// The process group backend "fccl": torch's collectives as calls of the library.
#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "bootstrap.h"
#include "fccl/fccl.h"
#include "tensors.h"
#include "work.h"

namespace fccl {

constexpr const char* kBackendName = "fccl";

// One part of an operation: at once where there is no stream, else on it.
using Step = std::function<fcclResult_t(fcclComm_t, fcclStream_t)>;

// One call of torch as the library runs it: calls of the library, and copies into and out of staging buffers, in order.
struct Operation {
  const char* title;
  c10d::OpType type;
  bool async;
  std::chrono::milliseconds timeout;
  std::vector<at::Tensor> inputs = {};
  std::vector<at::Tensor> outputs = {};
  std::vector<at::Tensor> staging = {};
  std::vector<Step> steps = {};
  bool copies = false;  // between tensors and staging buffers
  bool packs = false;   // reads tensors into staging buffers
};

// One rank's end of a process group of CPU memory. Owns the communicator and the stream of its asynchronous calls. Any thread
// may call it; calls are served one at a time in the order of arrival, except abort and getError, which never wait for another
// call. After the first failure every call throws its cause; shutdown and abort still work. Only the older of two names that
// torch gives a method is overridden: that compiles and is found from 2.11 to 2.15.
class Backend final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<std::vector<at::Tensor>>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  Backend(fcclComm_t comm, const Membership& membership);
  ~Backend() override;

  const std::string getBackendName() const override { return kBackendName; }
  c10::intrusive_ptr<Options> getBackendOptions() override;
  bool supportsSplitting() const override { return true; }
  void setTimeout(std::chrono::milliseconds timeout) override;
  uint64_t getSequenceNumberForGroup() override { return sequence_; }
  void setSequenceNumberForGroup() override {}
  c10d::ErrorType getError() override;
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<Options>& options) override;
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
  WorkPtr scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes,
                        std::vector<int64_t>& input_sizes, const c10d::AllToAllOptions& options) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;

  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr send(Tensors& tensors, int destination, int tag) override;
  WorkPtr recv(Tensors& tensors, int source, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

 private:
  struct Pending;

  // Runs the operation, or puts it on the stream, and gives the work that stands for it.
  WorkPtr run(Operation operation);
  void run_now(fcclComm_t comm, const Operation& operation, Work& work);
  void enqueue(fcclComm_t comm, Operation operation, const c10::intrusive_ptr<Work>& work);
  static void on_done(void* user_data);
  std::string attempt_of(const char* title) const;
  // The handle; throws when the group was aborted or shut down.
  fcclComm_t open_comm(const char* title);
  void set_deadline(fcclComm_t comm, std::chrono::milliseconds timeout, const char* title);
  void report(fcclResult_t result, const char* title) const;

  // Each adds one call of the library, and the staging it needs, to the operation. The tensors of a list hold the ranks' parts
  // one behind the other: one tensor per rank, or one in all. Tensors may have any strides.
  void add_allreduce(Operation& operation, const at::Tensor& tensor, const c10d::ReduceOp& op) const;
  void add_allgather(Operation& operation, const Tensors& outputs, const at::Tensor& input) const;
  void add_reduce_scatter(Operation& operation, const at::Tensor& output, const Tensors& inputs,
                          const c10d::ReduceOp& op) const;
  // Of the operation's inputs and outputs.
  void add_alltoall(Operation& operation) const;

  const std::string name_;
  const std::string group_text_;  // for messages
  std::atomic<uint64_t> sequence_ = 0;
  std::mutex calls_;  // held while a call of the communicator is issued or runs; guards the next four
  fcclStream_t stream_ = nullptr;
  bool copies_on_stream_ = false;       // which a blocking call waits for
  std::chrono::milliseconds timeout_;   // of calls that bring none
  std::chrono::milliseconds deadline_;  // the communicator's, as set last
  std::mutex life_;                     // held while the handle is looked at outside a call; guards the next two
  fcclComm_t comm_;
  bool aborted_ = false;
};

}  // namespace fccl
