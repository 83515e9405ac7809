// Stands in front of the system's sendmsg, and reads the frames that pass.
#include "scale/tapped_sends.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <string_view>
#include <variant>

#include "bootstrap/messages.h"
#include "channels/handshake.h"

namespace fccl::core::testing {
namespace {

constexpr std::string_view kMagic = "fccl\r\n\x1a\x01";
constexpr size_t kHandshake = kPreambleBytes + kProofBytes;

uint8_t kind_of_places() { return static_cast<uint8_t>(encode(PlaceInTree{"10.0.0.1:1"}).front()); }

// One direction of a connection.
struct Stream {
  size_t to_skip = 0;
  size_t head = 0;  // bytes of a message's length that have passed
  uint32_t length = 0;
};

// They are never destroyed, since detached threads may still send when the process ends.
std::mutex& mutex = *new std::mutex;
std::map<int, Stream>& streams = *new std::map<int, Stream>;  // by socket
std::map<pid_t, Sends>& sends = *new std::map<pid_t, Sends>;

void follow(Stream& stream, std::string_view bytes, Sends& of_thread) {
  if (bytes.starts_with(kMagic)) stream = {kHandshake};
  while (!bytes.empty()) {
    if (stream.to_skip > 0) {
      const size_t skipped = std::min(stream.to_skip, bytes.size());
      stream.to_skip -= skipped;
      bytes.remove_prefix(skipped);
    } else if (stream.head < sizeof(uint32_t)) {
      stream.length |= uint32_t{static_cast<unsigned char>(bytes.front())} << (8 * stream.head++);
      bytes.remove_prefix(1);
    } else {
      ++of_thread.messages;
      static const uint8_t of_place = kind_of_places();
      if (stream.length > 0 && static_cast<uint8_t>(bytes.front()) == of_place) ++of_thread.places;
      stream = {stream.length + sizeof(Digest)};
    }
  }
}

}  // namespace

void forget_sends() {
  const std::lock_guard lock(mutex);
  sends.clear();
}

std::map<pid_t, Sends> sends_of_threads() {
  const std::lock_guard lock(mutex);
  return sends;
}

}  // namespace fccl::core::testing

// A message's length is taken for whole: it and the first byte behind it may come in parts.
extern "C" ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  using namespace fccl::core::testing;
  const ssize_t put = ::syscall(SYS_sendmsg, socket, message, flags);
  if (put <= 0) return put;
  const std::lock_guard lock(mutex);
  Sends& of_thread = sends[::gettid()];
  of_thread.bytes += static_cast<uint64_t>(put);
  follow(streams[socket], {static_cast<const char*>(message->msg_iov->iov_base), static_cast<size_t>(put)}, of_thread);
  return put;
}
