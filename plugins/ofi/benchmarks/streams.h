// Streams: plain TCP connections between two ranks, one per NIC, as the measure of what the links and the kernel can do.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "meeting.h"

namespace fccl::benchmarks {

// Between this rank and the one of the same local number on the other of two hosts. One thread.
class Streams {
 public:
  Streams(Meeting& meeting, const std::vector<std::string>& nics);

  // Sends and receives so many bytes at the same time, cut evenly over the NICs.
  void exchange(const std::byte* out, std::byte* in, size_t bytes);

 private:
  std::vector<Descriptor> sockets_;  // by NIC
};

}  // namespace fccl::benchmarks
