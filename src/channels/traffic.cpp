// Counts over all channels of this process.
#include "channels/traffic.h"

#include <atomic>

namespace fccl::core {
namespace {

constinit std::atomic<uint64_t> sockets{0}, messages{0}, bytes_sent{0};

}  // namespace

Traffic traffic_of_process() { return {sockets.load(), messages.load(), bytes_sent.load()}; }

void count_socket() { ++sockets; }
void count_message() { ++messages; }
void count_sent(size_t bytes) { bytes_sent += bytes; }

}  // namespace fccl::core
