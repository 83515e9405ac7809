// StagedCall: a call or a transfer on GPU memory that runs as a whole in host memory of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device_calls/on_device.h"
#include "operations/in_call.h"

namespace fccl::core {

// The thread that issues the call makes, uses and destroys it, before the communicator ends. The host memory holds all that the
// rank gives and takes, packed, so ranks need not agree on how a call is cut.
class StagedCall {
 public:
  // A run of bytes that is copied at once. A value.
  struct Piece {
    std::byte* host;
    std::byte* device;
    size_t bytes;
  };

  // `in_call`: the communicator's flag. Error: fcclSystemError if there is no host memory for it.
  static Result<std::unique_ptr<StagedCall>> make(const CallOrTransfer& operation, const OnDevice& on_device, int rank,
                                                  int ranks, std::atomic<bool>& in_call);
  StagedCall(const StagedCall&) = delete;
  StagedCall& operator=(const StagedCall&) = delete;

  const std::vector<Piece>& in() const { return in_; }
  const std::vector<Piece>& out() const { return out_; }
  void* stream() const { return stream_; }
  // The operation on host memory; its factor and its input are there once the pieces have been copied.
  const CallOrTransfer& on_host() const { return on_host_; }

 private:
  struct Freed {
    void operator()(std::byte* memory) const;
  };

  StagedCall(const CallOrTransfer& operation, const OnDevice& on_device, std::atomic<bool>& in_call);
  Result<void> stage(Call& call, const void* scalar, int rank, int ranks);
  Result<void> stage(TransferEnd& transfer);
  Result<void> reserve(size_t bytes);

  InCall inside_;
  CallOrTransfer on_host_;
  void* stream_;
  UnevenBlocks blocks_;
  std::unique_ptr<std::byte, Freed> memory_;
  std::vector<Piece> in_, out_;
};

std::string describe(const CallOrTransfer& operation);

}  // namespace fccl::core
