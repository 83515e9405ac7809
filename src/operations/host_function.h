// HostFunction: a function of the user's that a host stream calls in its turn.
#pragma once

#include "operations/stream_item.h"

namespace fccl::core {

class HostFunction final : public StreamItem {
 public:
  HostFunction(fcclHostFunc_t function, void* user_data) : function_(function), user_data_(user_data) {}

  // Calls the function. Error: fcclInvalidUsage if it throws.
  Result<Advance> advance() override;

 private:
  fcclHostFunc_t function_;
  void* user_data_;
};

// True if the caller is inside a host function, where waiting for its stream would never end.
bool is_in_host_function();

}  // namespace fccl::core
