// Builds the kernel's filter, and sets it on the listening socket.
#include "ofi/gate.h"

#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <vector>

namespace fccl::core::ofi {
namespace {

// The kernel's limit on a filter's length.
constexpr size_t kMostInstructions = BPF_MAXINSNS;
// Offset of the sender's address in a packet: from the begin of the IP header.
constexpr uint32_t kSenderInV4 = static_cast<uint32_t>(SKF_NET_OFF) + 12;
constexpr uint32_t kSenderInV6 = static_cast<uint32_t>(SKF_NET_OFF) + 8;
constexpr uint32_t kAdmit = UINT32_MAX;
constexpr uint32_t kDrop = 0;

// Returns the words of an address in network order; none for another family.
std::vector<uint32_t> words_of(const SocketName& name) {
  sockaddr_storage address{};
  std::memcpy(&address, name.data(), std::min(name.size(), sizeof address));
  std::vector<uint32_t> words;
  if (address.ss_family == AF_INET) words.push_back(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr);
  if (address.ss_family == AF_INET6) {
    words.resize(4);
    std::memcpy(words.data(), &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, sizeof(in6_addr));
  }
  for (uint32_t& word : words) word = ntohl(word);
  return words;
}

// Returns the address as it appears on the wire, for any port.
SocketName without_port(SocketName name) {
  if (name.size() >= 4) name[2] = name[3] = std::byte{0};
  return name;
}

// Compares with each address: if all of its words are the sender's, admits the packet. After the last address: drop.
std::vector<sock_filter> filter_of(const std::set<SocketName>& admitted) {
  std::vector<sock_filter> program;
  for (const SocketName& name : admitted) {
    const std::vector<uint32_t> words = words_of(name);
    if (words.empty()) return {};
    const uint32_t first = words.size() == 1 ? kSenderInV4 : kSenderInV6;
    for (size_t i = 0; i < words.size(); ++i) {
      // Jumps to the next address: over the two instructions of each word that follows, and the one that admits.
      const auto otherwise = static_cast<uint8_t>(2 * (words.size() - 1 - i) + 1);
      program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, first + static_cast<uint32_t>(4 * i)));
      program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, words[i], 0, otherwise));
    }
    program.push_back(BPF_STMT(BPF_RET | BPF_K, kAdmit));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, kDrop));
  return program;
}

}  // namespace

Gate::Gate(const SocketName& own) : socket_(listening_socket(own)) {
  if (socket_ < 0) return;
  admitted_.insert(without_port(own));
  close_to_others();
}

void Gate::admit(const SocketName& peer) {
  ++peers_;
  if (socket_ >= 0 && admitted_.insert(without_port(peer)).second) close_to_others();
}

void Gate::close_to_others() const {
  std::vector<sock_filter> program = filter_of(admitted_);
  if (program.empty() || program.size() > kMostInstructions) {
    const int none = 0;
    ::setsockopt(socket_, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof none);
    return;
  }
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (::setsockopt(socket_, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0) return;
  // The old filter does not know the newest peers.
  const int none = 0;
  ::setsockopt(socket_, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof none);
}

uint64_t Gate::turned_away() const {
  std::array<uint32_t, SK_MEMINFO_VARS> counts{};
  socklen_t bytes = sizeof counts;
  if (socket_ < 0 || ::getsockopt(socket_, SOL_SOCKET, SO_MEMINFO, counts.data(), &bytes) != 0) return 0;
  return counts[SK_MEMINFO_DROPS] > peers_ ? counts[SK_MEMINFO_DROPS] : 0;
}

void Gate::open_connection(int accepted) {
  const int none = 0;
  (void)::setsockopt(accepted, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof none);
}

}  // namespace fccl::core::ofi
