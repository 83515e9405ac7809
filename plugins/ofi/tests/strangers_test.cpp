// What somebody with libfabric and without secrets can do to a transport: nothing, attack by attack.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "attack/attacks.h"
#include "loopback.h"
#include "ofi/provider.h"
#include "os/descriptor.h"
#include "transports/processes.h"

namespace fccl::core {
namespace {

using Kind = Completion::Kind;

class StrangersTest : public testing::TestWithParam<attack::Attack>, protected Processes {
 protected:
  StrangersTest() {
    auto opened = open_loopback(2, 1);
    if (!opened) ADD_FAILURE() << opened.error().message;
    if (opened) start(std::move(*opened), 64);
  }
  // Returns the port on which a transport listens: libfabric's name stands at the end of its address.
  uint16_t port_of(int number) {
    const auto address = transport(number).address(0);
    sockaddr_in name{};
    std::memcpy(&name, address.data() + address.size() - sizeof name, sizeof name);
    return ntohs(name.sin_port);
  }
  // Peers that use each other, so that there is something to disturb.
  void expect_that_peers_go_on(uint32_t salt) {
    const size_t arrived = count(1, Kind::arrived);
    const size_t messages = count(1, Kind::message);
    fill(0, 100, 5000, salt);
    expect_copy(0, 100, 5000, 1, 300);
    post({}, write({}, 100, 5000, 300, salt));
    post({}, message({}, 100, 64));
    ASSERT_TRUE(drive_until([&] { return count(1, Kind::arrived) == arrived + 1 && count(1, Kind::message) == messages + 1; }));
    expect_memory();
  }
};

TEST_P(StrangersTest, have_no_effect) {
  expect_that_peers_go_on(1);
  // From the address of the peers, as another user of a peer's host.
  attack::FabricEnd end(ofi::libfabric_name(*ofi::find_provider("tcp"), fi_version()), "lo");
  const fi_addr_t victim = end.peer("127.0.0.1", port_of(1));
  constexpr size_t kAttempts = 300;
  const auto far_future = std::chrono::steady_clock::now() + kPatience;
  size_t posted = 0;
  attack::FabricEnd::Ends ended;
  while (ended.well + ended.badly < kAttempts && std::chrono::steady_clock::now() < far_future) {
    // More room than a sender needs that is refused and connects again.
    if (posted < ended.well + ended.badly + 8 && GetParam().post(end, victim, posted) == 0) ++posted;
    const auto more = end.poll();
    ended.well += more.well;
    ended.badly += more.badly;
    drive(1);
  }
  EXPECT_GE(ended.well + ended.badly, kAttempts);
  drive(100);
  EXPECT_EQ(count(1, Kind::arrived), 1u);
  EXPECT_EQ(count(1, Kind::message), 1u);
  const bool reads = std::string_view(GetParam().name) == "read";
  EXPECT_TRUE(!reads || ended.well == 0);
  expect_that_peers_go_on(2);
}

INSTANTIATE_TEST_SUITE_P(Each, StrangersTest, testing::ValuesIn(attack::attacks().begin(), attack::attacks().end()),
                         [](const auto& info) { return std::string(info.param.name); });

// Says whether a connection from an address of this machine comes about.
bool connects(const char* from, uint16_t to) {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in own{};
  own.sin_family = AF_INET;
  ::inet_pton(AF_INET, from, &own.sin_addr);
  sockaddr_in other{};
  other.sin_family = AF_INET;
  other.sin_port = htons(to);
  ::inet_pton(AF_INET, "127.0.0.1", &other.sin_addr);
  // The kernel repeats an unanswered SYN once, after a second.
  const int once = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_SYNCNT, &once, sizeof once);
  const timeval limit{.tv_sec = 0, .tv_usec = 300000};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) return false;
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&other), sizeof other) == 0;
}

TEST(GateTest, turns_away_and_counts_who_has_no_peers_address) {
  auto opened = open_loopback(1, 1);
  ASSERT_TRUE(opened) << opened.error().message;
  Transport& transport = *opened->front();
  const auto address = transport.address(0);
  sockaddr_in name{};
  std::memcpy(&name, address.data() + address.size() - sizeof name, sizeof name);
  EXPECT_TRUE(connects("127.0.0.1", ntohs(name.sin_port)));
  EXPECT_EQ(transport.turned_away(), 0u);
  EXPECT_FALSE(connects("127.0.0.2", ntohs(name.sin_port)));
  EXPECT_GE(transport.turned_away(), 1u);
  EXPECT_TRUE(connects("127.0.0.1", ntohs(name.sin_port)));
}

TEST(SecretsTest, of_two_transports_differ_and_cannot_be_counted) {
  auto opened = open_loopback(2, 1);
  ASSERT_TRUE(opened) << opened.error().message;
  std::vector<std::byte> bytes(4096);
  std::vector<uint64_t> keys;
  for (const auto& transport : *opened)
    for (int i = 0; i < 8; ++i) keys.push_back(transport->remote(*transport->register_memory(bytes, PeersMay::write), 0).key);
  std::ranges::sort(keys);
  // That two of 16 random keys lie so near has a chance of one in 2^25.
  for (size_t i = 1; i < keys.size(); ++i) EXPECT_GT(keys[i] - keys[i - 1], uint64_t{1} << 32);
}

TEST(RightsTest, of_memory_that_peers_may_not_write_are_kept) {
  auto opened = open_loopback(2, 1);
  ASSERT_TRUE(opened) << opened.error().message;
  Transport& own = *opened->at(0);
  Transport& other = *opened->at(1);
  constexpr std::byte kWritten{0x5a};
  std::vector<std::byte> mine(64, kWritten), closed(64), open_to_writes(64);
  const MemoryId local = own.register_memory(mine, PeersMay::nothing).value();
  const PeerId peer = own.connect(0, other.address(0)).value();
  ASSERT_TRUE(other.connect(0, own.address(0)));
  uint64_t tag = 0;
  // The writer may learn of a refused write or not; the bytes say whether it was let in.
  const auto is_written = [&](std::span<std::byte> target, PeersMay peers_may) {
    const Operation operation{.kind = Operation::Kind::write,
                              .peer = peer,
                              .memory = local,
                              .local = mine.data(),
                              .bytes = 8,
                              .remote = other.remote(other.register_memory(target, peers_may).value(), 0),
                              .tag = ++tag};
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(peers_may == PeersMay::write ? 20 : 1);
    size_t posted = own.post(0, {&operation, 1}).value();
    while (std::chrono::steady_clock::now() < deadline && target[0] != kWritten) {
      std::array<Completion, 8> found;
      (void)other.poll(0, found);
      if (posted == 0) posted = own.post(0, {&operation, 1}).value();
      (void)own.poll(0, found);
    }
    EXPECT_EQ(posted, 1u);
    return target[0] == kWritten;
  };
  EXPECT_TRUE(is_written(open_to_writes, PeersMay::write));
  EXPECT_FALSE(is_written(closed, PeersMay::nothing));
}

}  // namespace
}  // namespace fccl::core
