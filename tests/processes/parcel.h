// Parcel: one end of a transfer with a buffer that betrays every wrong byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/dtype.h"
#include "processes/trial.h"

namespace fccl::core::testing {

// A message from one rank to another. Bytes are made from (from, to, tag, iteration, index), so no two parcels of a test are
// alike.
struct Route {
  int from = 0;
  int to = 0;
  size_t count = 0;
  fcclDataType_t dtype = fcclUint8;
  int tag = -1;  // none
  int iteration = 0;
  size_t misalignment = 0;

  size_t bytes() const { return count * size_of(dtype); }
  std::byte byte_at(size_t index) const {
    uint64_t h = static_cast<uint64_t>(from) * 1'000'003 + static_cast<uint64_t>(to) * 7919 +
                 static_cast<uint64_t>(tag + 1) * 104'729 + static_cast<uint64_t>(iteration) * 15'485'863 + index / 8;
    h *= 0x9e3779b97f4a7c15ULL;
    h ^= h >> 29;
    return static_cast<std::byte>(h >> (index % 8 * 8));
  }
};

// Made, issued once, and asked for its fault when it is done. Must live until then.
class Parcel {
 public:
  explicit Parcel(const Route& route) : route_(route), buffer_(route.bytes(), route.misalignment) {}

  fcclResult_t send(fcclComm_t comm, fcclStream_t stream = nullptr) {
    for (size_t i = 0; i < buffer_.size(); ++i) buffer_.data()[i] = route_.byte_at(i);
    if (route_.tag < 0) return fcclSend(buffer_.data(), route_.count, route_.dtype, route_.to, comm, stream);
    return fcclSendTagged(buffer_.data(), route_.count, route_.dtype, route_.to, route_.tag, comm, stream);
  }
  fcclResult_t receive(fcclComm_t comm, fcclStream_t stream = nullptr) {
    if (route_.tag < 0) return fcclRecv(buffer_.data(), route_.count, route_.dtype, route_.from, comm, stream);
    return fcclRecvTagged(buffer_.data(), route_.count, route_.dtype, route_.from, route_.tag, nullptr, comm, stream);
  }
  // Receives from any source, which must be the one that the route names.
  fcclResult_t receive_from_any(fcclComm_t comm, int* source, fcclStream_t stream = nullptr) {
    return fcclRecvTagged(buffer_.data(), route_.count, route_.dtype, FCCL_ANY_SOURCE, route_.tag, source, comm, stream);
  }

  // Sets the route by which a message from any source came; it has the same count.
  void came_by(const Route& route) { route_ = route; }

  std::byte* data() { return buffer_.data(); }
  // The fault of a message that was sent or received: the buffer must be the route's.
  std::string fault() const {
    const std::string who = std::to_string(route_.from) + " to " + std::to_string(route_.to) + ", " +
                            std::to_string(route_.bytes()) + " bytes, tag " + std::to_string(route_.tag) + ", iteration " +
                            std::to_string(route_.iteration);
    for (size_t i = 0; i < buffer_.size(); ++i)
      if (buffer_.data()[i] != route_.byte_at(i)) return who + ": byte " + std::to_string(i) + " is wrong";
    return buffer_.guards_are_intact() ? "" : who + ": bytes beside the buffer were written";
  }

 private:
  Route route_;
  GuardedBuffer buffer_;
};

}  // namespace fccl::core::testing
