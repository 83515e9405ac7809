// Runs a group's operations on CPU memory: blocking ones on the caller's thread, others on host streams.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>
#include <utility>

#include "communicator.h"
#include "fccl/fccl.h"
#include "operation.h"
#include "transfer_streams.h"
#include "work.h"

namespace fccl::torch {

// Owns the host streams. The group shares it with the thread that ends it, if the group is dropped with calls outstanding. Any
// thread may call; operations are served one at a time in the order of arrival.
class CpuCalls {
 public:
  explicit CpuCalls(std::shared_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {}

  Communicator& communicator() { return *communicator_; }
  // Makes the communicator at once.
  void connect();
  // Continues with another communicator, and ends this rank's part of the old one. Needs the communicator's turn.
  void renew(fcclComm_t comm, Place place);
  // Runs the operation, or puts it on a stream, and returns the work that stands for it. `timeout` is the deadline of its
  // waits.
  c10::intrusive_ptr<c10d::Work> run(Operation operation, std::chrono::milliseconds timeout, const Describe& describe);
  // Waits for the asynchronous collectives; returns the first failure among them.
  fcclResult_t drain();
  bool has_outstanding();
  void abort();
  // Waits for the asynchronous operations and leaves.
  void shut_down();

 private:
  struct Pending;

  void run_now(fcclComm_t comm, const Operation& operation, Work& work);
  void enqueue(fcclComm_t comm, Operation operation, const c10::intrusive_ptr<Work>& work);
  fcclResult_t stream_of_collectives(fcclStream_t* stream);
  void end_stream();
  static void on_done(void* user_data);
  template <class Function>
  static void look_after(Function function);
  static void serve(fcclStream_t stream, unsigned long long position, std::chrono::milliseconds timeout);

  const std::shared_ptr<Communicator> communicator_;
  std::shared_ptr<TransferStreams> transfers_ = std::make_shared<TransferStreams>();  // streams of sends and receives
  std::shared_ptr<void> stream_;   // stream of collectives, which threads that wait for one hold, too; the communicator's turn
                                   // guards it and the next member
  bool copies_on_stream_ = false;  // the stream holds copies that a blocking call must wait for
};

}  // namespace fccl::torch
