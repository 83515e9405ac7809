// Whether a peer that libfabric cannot connect to is still there.
#include "ofi/reachability.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "sockets/socket.h"

namespace fccl::core::ofi {

namespace {

using std::chrono::seconds;

std::vector<std::byte> loopback(uint16_t port) {
  sockaddr_in in{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  std::vector<std::byte> bytes(sizeof(in));
  std::memcpy(bytes.data(), &in, sizeof(in));
  return bytes;
}

// A port that was free a moment ago, and its listener.
struct Listener {
  Descriptor socket;
  uint16_t port = 0;
};

Listener listen() {
  Listener listener;
  listener.socket = listen_tcp(Address{.v6 = false, .bytes = {127, 0, 0, 1}, .port = 0}).value();
  listener.port = address_of(listener.socket.get())->port;
  return listener;
}

TEST(ReachabilityTest, a_port_that_nobody_listens_on_is_refused) {
  Listener listener = listen();
  listener.socket.close();
  Reachability peer(loopback(listener.port));
  Reachability::Time now{};
  int error = 0;
  for (int attempt = 0; attempt < 10 && error == 0; ++attempt) error = peer.error_at(now += seconds(2));
  EXPECT_EQ(error, ECONNREFUSED);
}

TEST(ReachabilityTest, a_listener_that_accepts_nothing_is_reachable_until_it_is_gone) {
  Listener listener = listen();
  Reachability peer(loopback(listener.port));
  Reachability::Time now{};
  for (int attempt = 0; attempt < 20; ++attempt) ASSERT_EQ(peer.error_at(now += seconds(2)), 0);
  listener.socket.close();
  int error = 0;
  for (int attempt = 0; attempt < 10 && error == 0; ++attempt) error = peer.error_at(now += seconds(2));
  EXPECT_EQ(error, ECONNREFUSED);
}

TEST(ReachabilityTest, a_slow_peer_is_disturbed_once_a_second_at_most) {
  const Listener listener = listen();
  Reachability peer(loopback(listener.port));
  const Reachability::Time begin{seconds(100)};
  for (int i = 0; i < 3000; ++i) ASSERT_EQ(peer.error_at(begin + std::chrono::milliseconds(i)), 0);
  int connections = 0;
  while (accept_one(listener.socket.get()).socket) ++connections;
  EXPECT_GE(connections, 1);
  EXPECT_LE(connections, 3);
}

}  // namespace

}  // namespace fccl::core::ofi
