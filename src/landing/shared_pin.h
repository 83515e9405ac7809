// SharedPin: memory that a process pins once for all its lanes that use it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/result.h"
#include "device/device.h"

namespace fccl::core {

struct PinnedRange;

// Ranks of one process read each other's slots at the same addresses, and a second pin of a page is an error. So the first
// holder of a range pins it, and the last one unpins it. Holders of a range name the same bytes. Making and destroying one are
// set-up functions of the device; in both a thread waits only for another one that does the same with this range.
class SharedPin {
 public:
  // Pins pages that this process may write, or that it may only read.
  static Result<std::unique_ptr<SharedPin>> of_own(const std::shared_ptr<Device>& device, std::span<std::byte> memory);
  static Result<std::unique_ptr<SharedPin>> of_peer(const std::shared_ptr<Device>& device, std::span<const std::byte> memory);
  ~SharedPin();
  SharedPin(const SharedPin&) = delete;
  SharedPin& operator=(const SharedPin&) = delete;

  std::byte* device_address(const void* host) const;

 private:
  explicit SharedPin(std::shared_ptr<PinnedRange> range);

  std::shared_ptr<PinnedRange> range_;
};

}  // namespace fccl::core
