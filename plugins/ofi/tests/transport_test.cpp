// What is particular to a transport over libfabric: what it says, whom it holds up, and peers that are killed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <set>
#include <thread>

#include "discovery/sys_devices.h"
#include "loopback.h"
#include "sockets/network_interface.h"
#include "topology/costs.h"
#include "transports/processes.h"

namespace fccl::core {

namespace {

using testing::HasSubstr;
using Kind = Completion::Kind;

class OfiTransportTest : public testing::Test, protected Processes {
 protected:
  void open(int processes, int rails = 1) {
    auto opened = open_loopback(processes, rails);
    ASSERT_TRUE(opened) << opened.error().message;
    start(std::move(*opened), 64);
  }
};

Result<std::unique_ptr<Transport>> open_with(const TransportRequest& request) {
  return open_transport(FCCL_OFI_LIBRARY, request);
}

TEST_F(OfiTransportTest, says_which_provider_of_which_libfabric_uses_which_nics) {
  open(1, 2);
  EXPECT_THAT(transport(0).description(), testing::MatchesRegex("tcp \\(libfabric [0-9.]+, provider (net|tcp)\\) on lo, lo"));
  EXPECT_EQ(limits().immediate_bits, 32);
}

TEST_F(OfiTransportTest, finds_a_provider_and_a_nic_by_itself) {
  const auto opened = open_with({});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->limits().rails, 1);
}

TEST_F(OfiTransportTest, a_nic_that_is_not_there_is_named_with_those_that_are) {
  const auto opened = open_with({.provider = "tcp", .nics = {"lo", "eth77"}});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, fcclInvalidUsage);
  EXPECT_THAT(opened.error().message, testing::AllOf(HasSubstr("\"eth77\""), HasSubstr("there are: "), HasSubstr("lo")));
}

TEST_F(OfiTransportTest, a_provider_that_nobody_has_is_refused_with_the_names_of_all) {
  const auto opened = open_with({.provider = "sockets", .nics = {}});
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("there are efa, verbs and tcp"));
}

Result<OfferedNics> list_with(const NicsRequest& request) { return list_nics(FCCL_OFI_LIBRARY, request); }

std::vector<std::string> names_of(const OfferedNics& offered) {
  std::vector<std::string> names;
  names.reserve(offered.nics.size());
  for (const Nic& nic : offered.nics) names.push_back(nic.name);
  return names;
}

TEST_F(OfiTransportTest, lists_the_interfaces_by_which_other_hosts_may_be_reached) {
  const auto offered = list_with({.provider = "tcp", .names = {}});
  ASSERT_TRUE(offered) << offered.error().message;
  EXPECT_EQ(offered->provider, "tcp");
  EXPECT_THAT(names_of(*offered), testing::UnorderedElementsAreArray(usable_interfaces().value()));
  for (const Nic& nic : offered->nics) EXPECT_EQ(nic.place, SysDevices().place_of_interface(nic.name)) << nic.name;
}

TEST_F(OfiTransportTest, tells_the_costs_that_are_assumed_of_its_provider_over_the_slowest_interface) {
  const auto offered = list_with({.provider = "tcp", .names = {"lo"}});
  ASSERT_TRUE(offered) << offered.error().message;
  EXPECT_EQ(to_text({offered->costs}), to_text({*default_costs("tcp", offered->nics[0].megabits)}));
}

TEST_F(OfiTransportTest, lists_named_interfaces_once_and_in_their_order) {
  std::vector<std::string> names = usable_interfaces().value();
  std::erase(names, "lo");
  names.insert(names.begin(), "lo");
  std::vector<std::string> twice = names;
  twice.insert(twice.end(), names.begin(), names.end());
  const auto offered = list_with({.provider = "", .names = twice});
  ASSERT_TRUE(offered) << offered.error().message;
  EXPECT_EQ(offered->provider, "tcp");
  EXPECT_EQ(names_of(*offered), names);
}

TEST_F(OfiTransportTest, what_it_lists_can_be_opened) {
  const auto offered = list_with({});
  ASSERT_TRUE(offered) << offered.error().message;
  const auto opened = open_with({.provider = offered->provider, .nics = names_of(*offered)});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->limits().rails, static_cast<int>(offered->nics.size()));
}

TEST_F(OfiTransportTest, lists_nothing_for_a_name_that_is_not_there_or_a_provider_that_has_none) {
  const auto unknown = list_with({.provider = "tcp", .names = {"lo", "eth77"}});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, fcclInvalidUsage);
  EXPECT_THAT(unknown.error().message, testing::AllOf(HasSubstr("\"eth77\""), HasSubstr("there are: "), HasSubstr("lo")));
  const auto nobody = list_with({.provider = "sockets", .names = {}});
  ASSERT_FALSE(nobody);
  EXPECT_THAT(nobody.error().message, HasSubstr("there are efa, verbs and tcp"));
}

TEST_F(OfiTransportTest, an_address_of_another_protocol_is_refused_by_name) {
  open(2);
  auto address = transport(1).address(0);
  address[0] ^= std::byte{1};
  const auto connected = transport(0).connect(0, address);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code, fcclInvalidArgument);
  EXPECT_THAT(connected.error().message, HasSubstr("install the same libfabric on all hosts"));
}

TEST_F(OfiTransportTest, a_large_write_comes_whole) {
  open(2);
  std::vector<std::byte> source(size_t{40} << 20);
  std::vector<std::byte> target(source.size());
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  Operation operation = write({}, 0, source.size(), 0, 7);
  operation.memory = transport(0).register_memory(source, PeersMay::nothing).value();
  operation.local = source.data();
  const MemoryId there = transport(1).register_memory(target, PeersMay::write).value();
  operation.remote = transport(1).remote(there, 0);
  post({}, operation);
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::arrived) == 1 && count(0, Kind::ended) == 1; }));
  EXPECT_EQ(source, target);
}

TEST_F(OfiTransportTest, a_write_of_no_bytes_needs_no_memory_at_either_end) {
  open(2);
  Operation operation = write({}, 0, 0, 0, 77);
  operation.memory = MemoryId{1000};
  operation.local = nullptr;
  operation.remote = {.address = 12345, .key = 999};
  post({}, operation);
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::arrived) == 1 && count(0, Kind::ended) == 1; }));
  EXPECT_EQ(process(1).found[0].immediate, 77u);
  expect_memory();
}

// libfabric takes nothing for a peer that has not answered yet, and a peer answers when it polls.
TEST_F(OfiTransportTest, a_peer_that_does_not_poll_holds_up_no_other_and_is_not_given_up) {
  open(3);
  const Way to_silent{.from = 0, .to = 1};
  const Way to_other{.from = 0, .to = 2};
  // Made before, as the peer's own process would have.
  const std::vector<Operation> early = {write(to_silent, 0, 8, 0, 1), message(to_silent, 8, 8)};
  ASSERT_EQ(transport(0).post(0, early).value(), early.size());
  post(to_other, write(to_other, 0, 8, 0, 2));
  const auto poll_two = [&] {
    poll(0);
    poll(2);
  };
  const auto begin = std::chrono::steady_clock::now();
  while (count(2, Kind::arrived) == 0 && std::chrono::steady_clock::now() - begin < kPatience) poll_two();
  EXPECT_EQ(count(2, Kind::arrived), 1u);
  // Long enough to ask the kernel twice about the silent one.
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(1500)) {
    poll_two();
    std::this_thread::yield();
  }
  EXPECT_EQ(count(0, Kind::failed), 0u);
  ASSERT_TRUE(
      drive_until([&] { return count(1, Kind::arrived) == 1 && count(1, Kind::message) == 1 && count(0, Kind::ended) == 3; }));
}

TEST_F(OfiTransportTest, a_failure_says_what_was_attempted_with_whom_and_what_libfabric_said) {
  open(2);
  const Operation operation = write({}, 0, 4321, 0, 1);
  process(1).transport.reset();
  std::string message;
  on_found = [&](int, const Finding& finding) {
    if (finding.kind == Kind::failed) message = transport(0).error_of(finding.tag).message;
  };
  // A transport that has no room for an operation yet takes it later.
  size_t taken = 0;
  ASSERT_TRUE(drive_until([&] {
    if (taken == 0 && message.empty()) {
      const auto posted = transport(0).post(0, std::span(&operation, 1));
      if (posted)
        taken = *posted;
      else
        message = posted.error().message;
    }
    return !message.empty();
  }));
  EXPECT_THAT(message, testing::AllOf(HasSubstr("cannot write 4321 bytes to "), HasSubstr("127.0.0.1:"), HasSubstr("tcp on lo"),
                                      HasSubstr("libfabric ")));
}

long open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

TEST_F(OfiTransportTest, transports_leave_no_descriptor_behind) {
  // Libraries may keep some of their first use.
  for (long before = 0, round = 0; round < 3; ++round) {
    open(2, 2);
    for (const int rail : {0, 1}) post({.from = 0, .to = 1, .rail = rail}, write({.from = 0, .to = 1, .rail = rail}, 0, 8, 0));
    ASSERT_TRUE(drive_until([&] { return count(1, Kind::arrived) == 2; }));
    processes.clear();
    if (round == 0) before = open_descriptors();
    EXPECT_EQ(open_descriptors(), before);
  }
}

// Lists what a program that this process started would inherit beside `before`.
std::vector<std::string> inherited_beside(const std::set<int>& before) {
  std::vector<std::string> inherited;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::stoi(entry.path().filename());
    const int flags = ::fcntl(descriptor, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0 && !before.contains(descriptor))
      inherited.push_back(std::filesystem::read_symlink(entry.path()).string());
  }
  return inherited;
}

TEST_F(OfiTransportTest, no_program_that_is_started_inherits_a_descriptor_of_libfabric) {
  std::set<int> before;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    before.insert(std::stoi(entry.path().filename()));
  open(3);
  // Connections come with the first use.
  for (const Way way : {Way{.from = 0, .to = 1}, Way{.from = 0, .to = 2}, Way{.from = 2, .to = 1}})
    post(way, message(way, 0, 8));
  ASSERT_TRUE(drive_until([&] { return count(1, Kind::message) == 2 && count(2, Kind::message) == 1; }));
  drive(10);
  EXPECT_THAT(inherited_beside(before), testing::IsEmpty());
}

// Two processes need this of each other.
struct Introduction {
  std::array<std::byte, Transport::kAddressBytes> address{};
  size_t address_bytes = 0;
  RemoteMemory memory;
};

Introduction introduction_of(Transport& transport, MemoryId memory) {
  Introduction own;
  const auto address = transport.address(0);
  std::ranges::copy(address, own.address.begin());
  own.address_bytes = address.size();
  own.memory = transport.remote(memory, 0);
  return own;
}

// A process that writes and sends to the one it is told of, until it is killed.
[[noreturn]] void bother(int socket) {
  auto opened = open_loopback(1, 1);
  Introduction victim;
  if (!opened || ::read(socket, &victim, sizeof(victim)) != sizeof(victim)) ::_exit(1);
  Transport& transport = *opened->front();
  static std::array<std::byte, 100000> bytes{};
  const auto memory = transport.register_memory(bytes, PeersMay::nothing);
  const auto peer = transport.connect(0, std::span(victim.address).first(victim.address_bytes));
  if (!memory || !peer) ::_exit(1);
  const Introduction own = introduction_of(transport, *memory);
  if (::write(socket, &own, sizeof(own)) != sizeof(own)) ::_exit(1);
  Operation operation{.peer = *peer, .memory = *memory, .local = bytes.data(), .bytes = bytes.size(), .remote = victim.memory};
  while (true) {
    operation.kind = operation.tag % 3 == 0 ? Operation::Kind::message : Operation::Kind::write;
    operation.bytes = operation.kind == Operation::Kind::message ? 4000 : bytes.size();
    if (transport.post(0, std::span(&operation, 1)).value_or(0) == 1) ++operation.tag;
    Completion found[8];
    if (!transport.poll(0, found)) ::_exit(1);
  }
}

TEST_F(OfiTransportTest, a_peer_that_is_killed_while_it_writes_disturbs_no_other) {
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
  const pid_t child = ::fork();
  if (child == 0) bother(sockets[1]);
  open(2);
  const Introduction own = introduction_of(transport(0), process(0).landing);
  ASSERT_EQ(::write(sockets[0], &own, sizeof(own)), static_cast<ssize_t>(sizeof(own)));
  Introduction theirs;
  ASSERT_EQ(::read(sockets[0], &theirs, sizeof(theirs)), static_cast<ssize_t>(sizeof(theirs)));
  const auto peer = transport(0).connect(0, std::span(theirs.address).first(theirs.address_bytes));
  ASSERT_TRUE(peer) << peer.error().message;
  ASSERT_TRUE(drive_until([&] { return count(0, Kind::arrived) > 20 && count(0, Kind::message) > 10; }));
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  drive(1000);
  // To the other both ways, and to the dead one.
  Operation to_dead = write({.from = 0, .to = 1}, 0, 8, 0);
  to_dead.peer = *peer;
  to_dead.remote = theirs.memory;
  const auto posted = transport(0).post(0, std::span(&to_dead, 1));
  const size_t messages = count(0, Kind::message);
  post({.from = 1, .to = 0}, message({.from = 1, .to = 0}, 0, 64));
  post({.from = 0, .to = 1}, write({.from = 0, .to = 1}, 0, 64, 0, 5));
  ASSERT_TRUE(drive_until([&] {
    const bool dead_is_known = !posted || count(0, Kind::failed) == 1 || count(0, Kind::ended) == 2;
    return count(1, Kind::arrived) == 1 && count(0, Kind::message) == messages + 1 && dead_is_known;
  }));
  for (const int socket : sockets) ::close(socket);
}

}  // namespace

}  // namespace fccl::core
