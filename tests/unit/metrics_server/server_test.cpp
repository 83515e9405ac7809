// Tests of the metrics server: its answers, and that no client delays the others.
#include "metrics_server/server.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <vector>

#include "metrics/process_page.h"
#include "settings/settings.h"
#include "unit/metrics_server/exposition.h"

namespace fccl::core::metrics {
namespace {

using namespace std::chrono_literals;

constexpr const char* kRequest = "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";

std::string answer(std::string_view request) {
  return answer_to(request, [] { return std::string("text"); });
}

TEST(Answer, waits_for_the_whole_request) { EXPECT_EQ(answer("GET /metrics HTTP/1.1\r\nHost: x\r\n"), ""); }

TEST(Answer, is_the_text_with_its_length) {
  const std::string said = answer(kRequest);
  EXPECT_TRUE(said.starts_with("HTTP/1.0 200 OK\r\n")) << said;
  EXPECT_NE(said.find("\r\nContent-Length: 4\r\n"), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with("\r\n\r\ntext")) << said;
  EXPECT_TRUE(answer("GET /metrics?name=x HTTP/1.1\r\n\r\n").starts_with("HTTP/1.0 200 "));
}

TEST(Answer, to_another_path_is_404) {
  EXPECT_TRUE(answer("GET /secrets HTTP/1.1\r\n\r\n").starts_with("HTTP/1.0 404 "));
  EXPECT_TRUE(answer("GET /metrics_of_others HTTP/1.1\r\n\r\n").starts_with("HTTP/1.0 404 "));
  EXPECT_TRUE(answer("GET \r\n\r\n").starts_with("HTTP/1.0 404 "));
}

TEST(Answer, to_another_method_is_405) {
  EXPECT_TRUE(answer("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.0 405 "));
  EXPECT_TRUE(answer(std::string("\0\xff\x16\x03\n\n", 6)).starts_with("HTTP/1.0 405 "));
}

TEST(Answer, to_a_request_that_is_too_long_is_431) {
  EXPECT_EQ(answer(std::string(kLongestRequest, 'x')), "");
  EXPECT_TRUE(answer(std::string(kLongestRequest + 1, 'x')).starts_with("HTTP/1.0 431 "));
}

// Returns a port that was free a moment ago.
Address free_address() {
  const auto listener = *listen_tcp(*address_from("127.0.0.1:0"));
  return *address_of(listener.get());
}

Connection connect_to(const Address& address, std::string_view said = {}) {
  Connection connection = connect_tcp(address, Deadline::after(5s));
  if (connection.socket && !said.empty()) (void)write_some(connection.socket.get(), said);
  return connection;
}

// Reads until the other end closes.
std::string hear(const Connection& connection) {
  if (!connection.socket) return "not connected";
  std::string said;
  for (const Deadline deadline = Deadline::after(30s); !deadline.passed();) {
    pollfd ready{connection.socket.get(), POLLIN, 0};
    poll_until({&ready, 1}, deadline);
    std::array<char, 4096> buffer;
    const fccl::core::Transfer got = read_some(connection.socket.get(), buffer);
    said.append(buffer.data(), got.bytes);
    if (got.closed || (got.error != 0 && got.error != EAGAIN)) return said;
  }
  return "no end";
}

std::string ask(const Address& address) { return hear(connect_to(address, kRequest)); }

// Returns what is wrong with an answer that should be the text; "" if nothing is.
std::string fault_of(const std::string& said) {
  if (!said.starts_with("HTTP/1.0 200 OK\r\n")) return said;
  return read(said.substr(said.find("\r\n\r\n") + 4)).fault;
}

int serving_threads() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm") >> std::ws, name);
    count += name == "fccl-metrics" ? 1 : 0;
  }
  return count;
}

class MetricsServer : public ::testing::Test {
 protected:
  MetricsServer() {
    place->show([](CommunicatorPart& part) { part.ranks = 1; });
    EXPECT_TRUE(serve(address));
  }
  const Address address = free_address();
  std::unique_ptr<CommunicatorPlace> place = std::make_unique<CommunicatorPlace>();
};

TEST_F(MetricsServer, serves_until_the_last_communicator_ends) {
  EXPECT_TRUE(serve(address));
  EXPECT_EQ(fault_of(ask(address)), "");
  auto second = std::make_unique<CommunicatorPlace>();
  place.reset();
  EXPECT_EQ(fault_of(ask(address)), "");
  EXPECT_EQ(serving_threads(), 1);
  second.reset();
  EXPECT_EQ(ask(address), "not connected");
  EXPECT_EQ(serving_threads(), 0);
}

TEST_F(MetricsServer, serves_again_after_it_has_ended) {
  place.reset();
  place = std::make_unique<CommunicatorPlace>();
  ASSERT_TRUE(serve(address));
  EXPECT_EQ(fault_of(ask(address)), "");
}

TEST_F(MetricsServer, answers_while_many_clients_say_nothing_or_do_not_read) {
  std::vector<Connection> held;
  for (size_t i = 0; i < 3 * kMostClients; ++i) held.push_back(connect_to(address, i % 2 == 0 ? "" : kRequest));
  const Clock::time_point asked = Clock::now();
  EXPECT_EQ(fault_of(ask(address)), "");
  EXPECT_LT(Clock::now() - asked, kPatience);
}

TEST_F(MetricsServer, survives_garbage_and_clients_that_go_away) {
  const std::string garbage(3 * kLongestRequest, '\xfe');
  for (int i = 0; i < 50; ++i) {
    const Connection client = connect_to(address, i % 2 == 0 ? std::string_view(garbage) : kRequest);
    const linger at_once{1, 0};
    if (i % 3 == 0) setsockopt(client.socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  EXPECT_EQ(fault_of(ask(address)), "");
}

TEST_F(MetricsServer, leaves_a_client_that_says_nothing) {
  const Connection silent = connect_to(address);
  const Clock::time_point began = Clock::now();
  EXPECT_EQ(hear(silent), "");
  EXPECT_GT(Clock::now() - began, kPatience / 2);
}

TEST_F(MetricsServer, is_not_its_forks) {
  const pid_t child = fork();
  if (child == 0) {
    stop_serving_if_unused();
    _exit(serving_threads());
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(fault_of(ask(address)), "");
}

TEST(Serve, fails_at_a_port_that_is_taken) {
  const auto listener = *listen_tcp(*address_from("127.0.0.1:0"));
  const CommunicatorPlace place;
  EXPECT_FALSE(serve(*address_of(listener.get())));
  EXPECT_EQ(serving_threads(), 0);
}

TEST(Serve, leaves_it_to_another_process_of_the_job_that_serves_there) {
  const Address address = free_address();
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe(ready.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    const CommunicatorPlace place;
    if (serve(address)) (void)!write(ready[1], "x", 1);
    while (true) pause();
  }
  close(ready[1]);
  char letter = 0;
  ASSERT_EQ(::read(ready[0], &letter, 1), 1);
  CommunicatorPlace place;
  EXPECT_FALSE(serve(address));
  place.show([&](CommunicatorPart& part) {
    part.places = 1;
    part.processes[0] = child;
  });
  EXPECT_TRUE(serve(address));
  EXPECT_EQ(serving_threads(), 0);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
}

TEST(ServeIfAsked, does_nothing_unasked) {
  const CommunicatorPlace place;
  serve_if_asked(Settings{});
  EXPECT_EQ(serving_threads(), 0);
  EXPECT_EQ(page_of_process().served_port.load(), 0U);
}

TEST(ServeIfAsked, warns_once_of_a_port_that_is_taken) {
  const auto listener = *listen_tcp(*address_from("127.0.0.1:0"));
  Settings settings;
  settings.metrics_port = address_of(listener.get())->port;
  const CommunicatorPlace place;
  ::testing::internal::CaptureStderr();
  serve_if_asked(settings);
  serve_if_asked(settings);
  const std::string said = ::testing::internal::GetCapturedStderr();
  const size_t first = said.find("the metrics of this host are not served");
  EXPECT_NE(first, std::string::npos);
  EXPECT_NE(said.find("FCCL_METRICS_PORT"), std::string::npos);
  EXPECT_EQ(said.find("the metrics of this host are not served", first + 1), std::string::npos) << said;
}

}  // namespace
}  // namespace fccl::core::metrics
