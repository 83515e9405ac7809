// Tests of sockets: addresses, abstract names, passed descriptors, and that no call blocks.
#include "sockets/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <list>
#include <thread>

#include "os/error_text.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

Address loopback() { return {false, {127, 0, 0, 1}, 0}; }

bool readable_within(int socket, std::chrono::milliseconds span) {
  pollfd ready{socket, POLLIN, 0};
  return poll_until({&ready, 1}, Deadline::after(span)) == 1;
}

struct Pair {
  Descriptor listener;
  Descriptor connected;
  Descriptor accepted;
};

Pair local_pair() {
  Pair pair;
  pair.listener = std::move(*listen_local(4));
  pair.connected = std::move(connect_local(*local_name(pair.listener.get()), 1ms).socket);
  pair.accepted = std::move(accept_one(pair.listener.get()).socket);
  return pair;
}

TEST(Socket, addresses_read_as_people_write_them) {
  EXPECT_EQ(to_text({false, {10, 0, 0, 1}, 4242}), "10.0.0.1:4242");
  Address v6{true, {0xfd}, 80};
  v6.bytes[15] = 1;
  EXPECT_EQ(to_text(v6), "[fd00::1]:80");
}

TEST(Socket, an_address_is_read_back_only_from_the_text_that_it_has) {
  Address v6{true, {0xfd}, 65535};
  v6.bytes[15] = 1;
  for (const Address& address : {Address{false, {10, 0, 0, 1}, 4242}, Address{false, {255, 255, 255, 255}, 0}, v6})
    EXPECT_EQ(address_from(to_text(address)), address) << to_text(address);
  for (const char* text : {"",
                           ":",
                           "10.0.0.1",
                           "10.0.0.1:",
                           ":4242",
                           "10.0.0.1:65536",
                           "10.0.0.1:-1",
                           "10.0.0.1:1x",
                           "10.0.0.1:01",
                           " 10.0.0.1:1",
                           "10.0.0:1",
                           "10.0.0.01:1",
                           "10.0.0.256:1",
                           "host-a:1",
                           "fd00::1:80",
                           "[fd00::1]",
                           "[]:1",
                           "[10.0.0.1]:1",
                           "[fd00:0::1]:1",
                           "[fd00::1%eth0]:1",
                           "[:1"})
    EXPECT_FALSE(address_from(text)) << text;
  EXPECT_FALSE(address_from(std::string_view("10.0.0.1\0:1", 11)));
}

TEST(Socket, a_tcp_listener_on_port_zero_can_be_found_and_reached) {
  const Descriptor listener = std::move(*listen_tcp(loopback()));
  const Address address = *address_of(listener.get());
  EXPECT_NE(address.port, 0);
  const Connection connection = connect_tcp(address, Deadline::after(1s));
  ASSERT_TRUE(connection.socket) << error_text(connection.error);
  ASSERT_TRUE(readable_within(listener.get(), 1s));
  EXPECT_TRUE(accept_one(listener.get()).socket);
}

TEST(Socket, connecting_where_nobody_listens_is_refused) {
  Address address;
  {
    const Descriptor listener = std::move(*listen_tcp(loopback()));
    address = *address_of(listener.get());
  }
  EXPECT_EQ(connect_tcp(address, Deadline::after(1s)).error, ECONNREFUSED);
}

TEST(Socket, accepting_when_nobody_waits_returns_at_once) {
  const Descriptor listener = std::move(*listen_tcp(loopback()));
  EXPECT_EQ(accept_one(listener.get()).error, EAGAIN);
}

TEST(Socket, two_local_listeners_have_different_names_and_a_closed_one_is_refused) {
  Descriptor a = std::move(*listen_local(1));
  const Descriptor b = std::move(*listen_local(1));
  const std::string name = *local_name(a.get());
  EXPECT_NE(name, *local_name(b.get()));
  EXPECT_TRUE(connect_local(name, 1ms).socket);
  a.close();
  EXPECT_EQ(connect_local(name, 1ms).error, ECONNREFUSED);
}

TEST(Socket, every_socket_is_closed_on_exec_and_never_blocks) {
  const Pair pair = local_pair();
  for (const int socket : {pair.listener.get(), pair.connected.get(), pair.accepted.get()}) {
    EXPECT_NE(::fcntl(socket, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(::fcntl(socket, F_GETFL) & O_NONBLOCK, 0);
  }
}

TEST(Socket, a_descriptor_travels_with_the_bytes_and_is_closed_on_exec) {
  const Pair pair = local_pair();
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const Descriptor read_end(ends[0]);
  {
    const Descriptor write_end(ends[1]);
    EXPECT_EQ(write_some(pair.accepted.get(), "x", std::array{write_end.get()}).bytes, 1U);
  }
  std::array<char, 8> buffer{};
  Descriptor passed;
  EXPECT_EQ(read_some(pair.connected.get(), buffer, {&passed, 1}).bytes, 1U);
  ASSERT_TRUE(passed);
  EXPECT_NE(::fcntl(passed.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(::write(passed.get(), "hi", 2), 2);
  EXPECT_EQ(::read(read_end.get(), buffer.data(), buffer.size()), 2);
}

TEST(Socket, a_descriptor_for_which_the_process_has_no_room_is_told_to_be_lost) {
  const Pair pair = local_pair();
  EXPECT_EQ(write_some(pair.accepted.get(), "x", std::array{STDIN_FILENO}).bytes, 1U);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  std::array<char, 8> buffer{};
  Descriptor passed;
  const Transfer got = read_some(pair.connected.get(), buffer, {&passed, 1});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(got.bytes, 1U);
  EXPECT_TRUE(got.lost);
  EXPECT_FALSE(passed);
}

ptrdiff_t count_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

// Sends one byte with `number` copies of standard input.
void send_descriptors(int socket, int number) {
  char byte = 'x';
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 16)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(sizeof(int) * number);
  cmsghdr* entry = CMSG_FIRSTHDR(&message);
  entry->cmsg_level = SOL_SOCKET;
  entry->cmsg_type = SCM_RIGHTS;
  entry->cmsg_len = CMSG_LEN(sizeof(int) * number);
  std::memset(CMSG_DATA(entry), 0, sizeof(int) * number);
  ASSERT_EQ(::sendmsg(socket, &message, 0), 1);
}

TEST(Socket, of_many_descriptors_that_come_at_once_only_the_first_enters_the_process) {
  const Pair pair = local_pair();
  const ptrdiff_t before = count_descriptors();
  for (const int number : {1, 2, 3, 16}) {
    send_descriptors(pair.connected.get(), number);
    std::array<char, 8> buffer{};
    Descriptor passed;
    EXPECT_EQ(read_some(pair.accepted.get(), buffer, {&passed, 1}).bytes, 1U);
    EXPECT_TRUE(passed);
    EXPECT_EQ(count_descriptors(), before + 1) << number << " were sent";
  }
}

TEST(Socket, two_descriptors_that_were_asked_for_come_in_their_order_and_no_third) {
  const Pair pair = local_pair();
  std::array<Descriptor, 2> pipe, passed;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  for (size_t i = 0; i < 2; ++i) pipe[i] = Descriptor(ends[i]);
  std::array<char, 8> buffer{};
  EXPECT_EQ(write_some(pair.accepted.get(), "x", ends).bytes, 1U);
  EXPECT_EQ(read_some(pair.connected.get(), buffer, passed).bytes, 1U);
  EXPECT_EQ(::write(passed[1].get(), "hi", 2), 2);
  EXPECT_EQ(::read(passed[0].get(), buffer.data(), 2), 2);
  const ptrdiff_t before = count_descriptors();
  for (const int number : {3, 16}) {
    send_descriptors(pair.connected.get(), number);
    std::array<Descriptor, 2> of_many;
    EXPECT_EQ(read_some(pair.accepted.get(), buffer, of_many).bytes, 1U);
    EXPECT_EQ(count_descriptors(), before + 2) << number << " were sent";
  }
}

TEST(Socket, descriptors_that_nobody_asked_for_never_enter_the_process) {
  const Pair pair = local_pair();
  const ptrdiff_t before = count_descriptors();
  for (const int number : {1, 2, 16}) {
    send_descriptors(pair.connected.get(), number);
    std::array<char, 8> buffer{};
    EXPECT_EQ(read_some(pair.accepted.get(), buffer).bytes, 1U);
    EXPECT_EQ(count_descriptors(), before) << number << " were sent";
  }
}

TEST(Socket, connecting_where_the_line_is_full_waits_for_a_place) {
  Pair pair = local_pair();
  const std::string name = *local_name(pair.listener.get());
  std::list<Descriptor> line;
  while (Descriptor next = std::move(connect_local(name, 1ms).socket)) line.push_back(std::move(next));
  EXPECT_EQ(connect_local(name, 1ms).error, EAGAIN);
  std::jthread accepting([&] {
    std::this_thread::sleep_for(20ms);
    accept_one(pair.listener.get());
  });
  const Connection late = connect_local(name, 5s);
  EXPECT_TRUE(late.socket) << error_text(late.error);
}

TEST(Socket, writing_to_a_peer_that_left_is_an_error_and_no_signal) {
  Pair pair = local_pair();
  pair.connected.close();
  EXPECT_EQ(write_some(pair.accepted.get(), "x").error, EPIPE);
}

TEST(Socket, shutting_ends_the_connection_although_a_copy_is_open) {
  const Pair pair = local_pair();
  const Descriptor copy(::dup(pair.accepted.get()));
  shut(pair.accepted.get());
  std::array<char, 8> buffer{};
  EXPECT_TRUE(read_some(pair.connected.get(), buffer).closed);
}

TEST(Socket, poll_keeps_its_deadline) {
  const Descriptor listener = std::move(*listen_tcp(loopback()));
  const auto begin = Clock::now();
  EXPECT_FALSE(readable_within(listener.get(), 30ms));
  EXPECT_GE(Clock::now() - begin, 30ms);
}

TEST(Socket, listens_on_the_first_free_port_of_a_range) {
  const Descriptor first = std::move(*listen_tcp(loopback()));
  const Address taken = *address_of(first.get());
  Result<Descriptor> next = listen_tcp(taken, static_cast<uint16_t>(std::min(taken.port + 50, 65535)));
  if (taken.port == 65535) GTEST_SKIP() << "the system gave the last port";
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_GT(address_of(next->get())->port, taken.port);
  Result<Descriptor> none = listen_tcp(taken, taken.port);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find(to_text(taken)), std::string::npos) << none.error().message;
}

}  // namespace
}  // namespace fccl::core
