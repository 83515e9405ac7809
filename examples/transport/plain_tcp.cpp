// A transport over plain TCP sockets: one NIC, a connection for each direction, and one frame for each operation.
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <wire/transport.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>

using namespace fccl::core;
namespace {
using Kind = Completion::Kind;
constexpr size_t kMostBytes = 256 * 1024, kMostBuffered = 16 * kMostBytes, kWindow = 64;
auto refuse(fcclResult_t code, const std::string& why) { return fail(code, "plain-tcp: " + why); }

struct Address {
  sockaddr_in place{};
  // A process that knows it is a peer, so that memory needs no key of its own.
  uint64_t secret = uint64_t{std::random_device()()} << 32 | std::random_device()();
};
struct Frame {
  uint64_t to, from, target, bytes, immediate, is_message;  // the secrets of both ends, and an operation
};
struct Connection {
  std::shared_ptr<int> fd;
  Address address{};
  std::string buffer{};  // bytes that are not sent, or not understood, yet
  bool is_over = false;
};

std::string first_of(const std::vector<std::string>& nics) { return nics.empty() ? "eth0" : nics[0]; }
void let_go(int* fd) { ::close(*fd), delete fd; }
Connection hold(int fd) { return {{new int(fd), let_go}}; }
Connection open_socket() { return hold(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

class PlainTcp final : public Transport {
 public:
  explicit PlainTcp(Connection listener) : listener_(std::move(listener)), own_(listener_.address) {}
  const TransportLimits& limits() const override { return limits_; }
  std::string description() const override { return "plain-tcp, an example of a transport"; }
  std::vector<std::byte> address(int) const override {
    const auto* begin = reinterpret_cast<const std::byte*>(&own_);
    return {begin, begin + sizeof own_};
  }
  Result<PeerId> connect(int, std::span<const std::byte> bytes) override {
    if (bytes.size() != sizeof(Address)) return refuse(fcclInvalidArgument, "these bytes are not an address");
    Connection& opened = out_.emplace_back(open_socket());
    std::memcpy(static_cast<void*>(&opened.address), bytes.data(), bytes.size());
    (void)::connect(*opened.fd, reinterpret_cast<sockaddr*>(&opened.address.place), sizeof opened.address.place);
    return PeerId(out_.size() - 1);
  }
  Result<MemoryId> register_memory(std::span<std::byte> memory, PeersMay peers_may) override {
    memories_.push_back(peers_may == PeersMay::write ? memory : std::span<std::byte>());
    return MemoryId(memories_.size() - 1);
  }
  void release_memory(MemoryId memory) override { memories_[size_t(memory)] = {}; }
  RemoteMemory remote(MemoryId memory, int) const override { return {.address = uint64_t(memory) << 40, .key = 0}; }
  Result<void> reserve_messages(int) override { return {}; }  // there is room for any number
  Result<size_t> post(int, std::span<const Operation> operations) override {
    for (size_t i = 0; i < operations.size(); ++i) {
      const Operation& each = operations[i];
      Connection& to = out_[size_t(each.peer)];
      const bool is_message = each.kind == Operation::Kind::message;
      const bool fits = each.bytes <= kMostBytes && each.bytes >= size_t(is_message);
      if (i == 0 && !fits) return refuse(fcclInvalidArgument, "an operation may not have so many bytes");
      if (i == 0 && to.is_over) return refuse(fcclRemoteError, "the connection to the peer has ended");
      if (!fits || to.is_over || ready_.size() - lent_ >= kWindow || to.buffer.size() > kMostBuffered) return i;
      const Frame frame{to.address.secret, own_.secret, each.remote.address, each.bytes, each.immediate, is_message};
      to.buffer.append(reinterpret_cast<const char*>(&frame), sizeof frame).append(static_cast<char*>(each.local), each.bytes);
      ready_.push_back({{Kind::ended, 0, each.tag, {}}, ""});  // its bytes are copied
      send(to);
    }
    return operations.size();
  }
  Result<size_t> poll(int, std::span<Completion> found) override {
    for (int fd; (fd = ::accept4(*listener_.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) in_.push_back(hold(fd));
    for (Connection& each : out_) send(each);
    for (Connection& each : in_) receive(each);
    std::erase_if(in_, [](const Connection& each) { return each.is_over; });
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<ptrdiff_t>(lent_));
    lent_ = std::min(found.size(), ready_.size());
    for (size_t i = 0; i < lent_; ++i) found[i] = ready_[i].first;
    return lent_;
  }
  Error error_of(uint64_t) override { return {fcclInternalError, "plain-tcp: no operation has failed"}; }

 private:
  static void send(Connection& to) {
    const ssize_t sent = ::send(*to.fd, to.buffer.data(), to.buffer.size(), MSG_NOSIGNAL);
    to.is_over |= sent < 0 && errno != EAGAIN;
    to.buffer.erase(0, std::max<ssize_t>(sent, 0));
  }
  bool put(const Frame& frame, const char* bytes) {
    const size_t number = frame.target >> 40, offset = frame.target << 24 >> 24;
    const auto memory = number < memories_.size() ? memories_[number] : std::span<std::byte>();
    const bool fits = offset <= memory.size() && frame.bytes <= memory.size() - offset;
    if (fits) std::copy_n(bytes, frame.bytes, reinterpret_cast<char*>(memory.data()) + offset);
    return fits || frame.bytes == 0;
  }
  void receive(Connection& from) {
    const ssize_t got = ::recv(*from.fd, chunk_.data(), chunk_.size(), 0);
    from.buffer.append(chunk_.data(), std::max<ssize_t>(got, 0));
    from.is_over = got == 0 || (got < 0 && errno != EAGAIN);
    const char *at = from.buffer.data(), *const end = at + from.buffer.size();
    for (Frame frame; size_t(end - at) >= sizeof frame; at += frame.bytes) {
      std::memcpy(&frame, at, sizeof frame);
      if (frame.to != own_.secret || frame.bytes > kMostBytes) return void(from.is_over = true);
      if (size_t(end - at) - sizeof frame < frame.bytes) break;
      at += sizeof frame;
      const bool is_known = std::ranges::any_of(out_, [&](const auto& each) { return each.address.secret == frame.from; });
      const bool passes = is_known && (frame.is_message != 0 || put(frame, at));
      const Kind kind = !passes ? Kind::stranger : frame.is_message != 0 ? Kind::message : Kind::arrived;
      auto& [found, message] = ready_.emplace_back(Completion{kind, uint32_t(frame.immediate), 0, {}}, "");
      if (kind == Kind::message) found.bytes = std::as_bytes(std::span(message.assign(at, frame.bytes)));
    }
    from.buffer.erase(0, size_t(at - from.buffer.data()));
  }

  const TransportLimits limits_{.write_bytes = kMostBytes, .message_bytes = kMostBytes, .outstanding = kWindow};
  const Connection listener_;
  const Address own_;
  std::vector<Connection> out_, in_;
  std::vector<std::span<std::byte>> memories_;            // empty where peers may not write
  std::deque<std::pair<Completion, std::string>> ready_;  // completions with their messages
  size_t lent_ = 0;                                       // of `ready_`: those of the last poll
  std::string chunk_ = std::string(kMostBytes, 0);
};

Result<std::unique_ptr<Transport>> open(const TransportRequest& request) {
  Connection own = open_socket();
  ifreq nic{};
  first_of(request.nics).copy(static_cast<char*>(nic.ifr_name), IFNAMSIZ - 1);
  auto* const name = reinterpret_cast<sockaddr*>(&own.address.place);
  socklen_t size = sizeof own.address.place;
  if (::ioctl(*own.fd, SIOCGIFADDR, &nic) != 0 || ::bind(*own.fd, &nic.ifr_addr, size) != 0 ||
      ::listen(*own.fd, SOMAXCONN) != 0 || ::getsockname(*own.fd, name, &size) != 0)
    return refuse(fcclSystemError, "cannot listen on " + first_of(request.nics) + ": " + std::strerror(errno));
  return std::make_unique<PlainTcp>(std::move(own));
}
Result<OfferedNics> list(const NicsRequest& request) {
  return OfferedNics{"plain-tcp", {{first_of(request.names), 0, {}}}, {40e-6, 30e-6, 1 / 1.1e9, 1 / 8e9, 1 / 5e9}};
}

}  // namespace

const TransportPlugin fccl_transport_plugin{kTransportContract, open, list};
