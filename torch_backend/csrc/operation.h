// One call of torch as the library runs it: its steps, and the tensors that they use.
#pragma once

#include <ATen/ATen.h>

#include <chrono>
#include <functional>
#include <memory>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "fccl/fccl.h"

namespace fccl::torch {

// One part of an operation. On CPU memory it runs at once if there is no stream, otherwise on the stream; on a device it always
// runs on the stream, which is then the thread's current one.
using Step = std::function<fcclResult_t(fcclComm_t, fcclStream_t)>;

// Calls of the library, and copies into and out of staging buffers, in order.
struct Operation {
  const char* title;
  c10d::OpType type;
  bool async;
  std::chrono::milliseconds timeout;
  std::vector<at::Tensor> inputs = {};
  std::vector<at::Tensor> outputs = {};
  std::vector<at::Tensor> staging = {};
  std::vector<Step> steps = {};
  size_t call_at = 0;   // index of the call among the steps of a send or a receive
  bool copies = false;  // has copies between tensors and staging buffers
  bool packs = false;   // reads tensors into staging buffers
  // A receive, which waits for no other operation, stores its sender's rank here. Other operations have null. Else null.
  std::shared_ptr<int> source = nullptr;
};

}  // namespace fccl::torch
