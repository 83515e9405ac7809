// Tests of the bootstrap under attack: a process without the key neither delays nor fails a rank.
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <list>

#include "bootstrap/messages.h"
#include "bootstrap/rendezvous.h"
#include "channels/channel.h"
#include "discovery/host_identity.h"
#include "sockets/socket.h"
#include "unit/bootstrap/joining.h"

namespace fccl::core {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// A connection to the root that has said `words`; none once the root has closed its door.
Descriptor stranger(const UniqueId& id, std::string_view words) {
  Connection connection = connect_tcp(id.root, Deadline::after(1s));
  while (connection.socket && !words.empty()) {
    const Transfer put = write_some(connection.socket.get(), words.substr(0, 65536));
    if (put.error != 0) break;
    words.remove_prefix(put.bytes);
  }
  return std::move(connection.socket);
}

// Two ranks join while the strangers stay; how long that took.
std::chrono::duration<double> join_two(const UniqueId& id) {
  const auto begin = Clock::now();
  for (const Result<Joined>& result : join_all(requests_of(id, 2))) EXPECT_TRUE(result) << result.error().message;
  return Clock::now() - begin;
}

std::string own_preamble() {
  const Conversation conversation(Role::connects, Key{}, {0});
  return std::string(conversation.outgoing());
}

ptrdiff_t descriptors_of_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

size_t resident_kilobytes() {
  std::ifstream status("/proc/self/statm");
  size_t total = 0;
  size_t resident = 0;
  status >> total >> resident;
  return resident * 4;
}

TEST(Strangers, silent_half_garbage_and_http_do_not_delay_a_join) {
  const Census census;
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  std::list<Descriptor> strangers;
  for (const std::string& words : {std::string(), own_preamble().substr(0, 7), own_preamble().substr(0, 40), own_preamble(),
                                   std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), std::string(1 << 20, '\xa5'),
                                   own_preamble() + std::string(1 << 20, '\0'), std::string("\x16\x03\x01\x02\x00\x01", 6)})
    strangers.push_back(stranger(id, words));
  EXPECT_LT(join_two(id), 500ms);
}

TEST(Strangers, more_silent_connections_than_the_root_keeps_do_not_delay_a_join) {
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  std::list<Descriptor> strangers;
  for (int i = 0; i < 400; ++i) strangers.push_back(stranger(id, {}));
  EXPECT_LT(join_two(id), 500ms);
}

TEST(Strangers, at_the_door_of_the_roots_host_do_not_delay_a_join) {
  const Census census;
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  std::list<Descriptor> strangers;
  for (int i = 0; i < 400; ++i) {
    strangers.push_back(std::move(connect_local(door_name(id, host_identity("")), 100ms).socket));
    ASSERT_TRUE(strangers.back());
    if (i % 2 == 0) write_some(strangers.back().get(), "GET / HTTP/1.1\r\n");
  }
  EXPECT_LT(join_two(id), 500ms);
}

TEST(Strangers, that_hold_the_name_of_the_door_do_not_keep_a_rank_from_the_root) {
  const Census census;
  for (const bool is_silent : {false, true}) {
    const UniqueId id = *open_bootstrap(on_interface("lo"));
    const Descriptor listener = std::move(listen_local_at(door_name(id, host_identity("elsewhere")), 8).socket);
    ASSERT_TRUE(listener);
    std::jthread stranger([&](const std::stop_token& stop) {
      std::list<Descriptor> accepted;
      while (!stop.stop_requested()) {
        pollfd ready{listener.get(), POLLIN, 0};
        poll_until({&ready, 1}, Deadline::after(10ms));
        if (Descriptor socket = std::move(accept_one(listener.get()).socket)) accepted.push_back(std::move(socket));
        if (!is_silent && !accepted.empty()) write_some(accepted.back().get(), "SSH-2.0-OpenSSH_9.2\r\n");
      }
    });
    std::vector<JoinRequest> requests = requests_of(id, 2);
    for (JoinRequest& request : requests) request.host_override = "elsewhere";
    const auto begin = Clock::now();
    for (const Result<Joined>& result : join_all(requests, 2s)) EXPECT_TRUE(result) << result.error().message;
    EXPECT_LT(Clock::now() - begin, is_silent ? 1500ms : 500ms);
  }
}

TEST(Strangers, thousands_of_short_connections_during_a_join_cost_no_memory) {
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  const size_t before = resident_kilobytes();
  std::jthread flood([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) stranger(id, own_preamble());
  });
  std::this_thread::sleep_for(500ms);
  EXPECT_LT(join_two(id), 1s);
  if (kSanitized)
    std::puts("memory not compared: sanitizers keep what is freed");
  else
    EXPECT_LT(resident_kilobytes(), before + 16 * 1024);
}

TEST(Strangers, at_a_full_door_delay_a_rank_only_while_it_is_full) {
  Descriptor listener = std::move(*listen_tcp({false, {127, 0, 0, 1}, 0}));
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  UniqueId id;
  id.root = *address_of(listener.get());
  std::list<Descriptor> strangers;
  while (Descriptor next = std::move(connect_tcp(id.root, Deadline::after(50ms)).socket)) strangers.push_back(std::move(next));
  const auto begin = Clock::now();
  std::jthread root([&] {
    std::this_thread::sleep_for(100ms);
    Rendezvous({.id = id, .listener = std::move(listener)}).serve();
  });
  EXPECT_TRUE(join(request_of(id, 0, 1), Deadline::after(10s)));
  // The kernel's own second attempt comes after a second.
  EXPECT_LT(Clock::now() - begin, 900ms);
}

TEST(Strangers, leave_the_process_of_the_root_enough_descriptors_to_join) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  // Roots of other tests may still wait in this process.
  few.rlim_cur = 64 + static_cast<rlim_t>(descriptors_of_process());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  const pid_t child = ::fork();
  if (child == 0) {
    ::setrlimit(RLIMIT_NOFILE, &before);
    std::list<Descriptor> strangers;
    for (int i = 0; i < 400; ++i) strangers.push_back(stranger(id, {}));
    while (true) ::pause();
  }
  std::this_thread::sleep_for(100ms);
  EXPECT_LT(join_two(id), 2s);
  ::setrlimit(RLIMIT_NOFILE, &before);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(Strangers, a_wrong_key_is_told_so_and_the_job_goes_on) {
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  UniqueId wrong = id;
  wrong.key[0] ^= 1;
  const auto begin = Clock::now();
  expect_failures(join_all({request_of(wrong, 0, 2)}), fcclInvalidUsage, {"does not hold the key", to_text(id.root)});
  EXPECT_LT(Clock::now() - begin, 1s);
  join_two(id);
}

TEST(Strangers, a_program_that_is_not_fccl_at_the_address_is_an_error_at_once) {
  const Descriptor listener = std::move(*listen_tcp({false, {127, 0, 0, 1}, 0}));
  UniqueId id;
  id.root = *address_of(listener.get());
  std::jthread server([&] {
    pollfd ready{listener.get(), POLLIN, 0};
    poll_until({&ready, 1}, Deadline::after(2s));
    const Connection connection = accept_one(listener.get());
    write_some(connection.socket.get(), "SSH-2.0-OpenSSH_9.2\r\n");
    std::this_thread::sleep_for(100ms);
  });
  expect_failures({join_all({request_of(id, 0, 2)})}, fcclInvalidUsage, {"does not speak FCCL"});
}

TEST(Strangers, a_key_holder_that_speaks_nonsense_is_named_and_nothing_breaks) {
  const UniqueId id = *open_bootstrap(on_interface("lo"));
  Channel rogue(std::move(connect_tcp(id.root, Deadline::after(1s)).socket), Conversation(Role::connects, id.key, {1}));
  ASSERT_TRUE(rogue.await_open(Deadline::after(1s)));
  rogue.say("\xff nonsense");
  ASSERT_TRUE(rogue.await_sent(Deadline::after(1s)));
  expect_failures(join_all({request_of(id, 0, 2)}), fcclRemoteError, {"rank 1 left while joining", "makes no sense"});
}

}  // namespace
}  // namespace fccl::core
