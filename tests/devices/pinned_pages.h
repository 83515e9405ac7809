// PinnedPages: whole pages of a test's own, pinned for as long as they live.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "device/device.h"
#include "device/words.h"

namespace fccl::core {

// One thread at a time, with a Use where it is made.
class PinnedPages {
 public:
  static size_t page() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

  PinnedPages(Device& device, size_t pages)
      : bytes_(pages * page()),
        host_(static_cast<std::byte*>(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        pinned_(device.pin({host_, bytes_}).value()) {}
  PinnedPages(const PinnedPages&) = delete;
  PinnedPages& operator=(const PinnedPages&) = delete;
  ~PinnedPages() {
    pinned_.reset();
    ::munmap(host_, bytes_);
  }

  size_t bytes() const { return bytes_; }
  std::byte* host(size_t at = 0) const { return host_ + at; }
  std::byte* device(size_t at = 0) const { return pinned_->device_address(host_ + at); }
  DeviceWord& word(size_t at = 0) const { return *reinterpret_cast<DeviceWord*>(host_ + at); }

 private:
  size_t bytes_;
  std::byte* host_;
  std::unique_ptr<PinnedMemory> pinned_;
};

}  // namespace fccl::core
