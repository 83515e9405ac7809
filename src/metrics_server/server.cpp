// Serves a few clients on one thread, and never blocks on one of them.
#include "metrics_server/server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "metrics/process_page.h"
#include "metrics_server/text.h"
#include "os/error_text.h"
#include "os/log.h"
#include "os/per_process.h"
#include "os/thread.h"
#include "settings/settings.h"

namespace fccl::core::metrics {
namespace {

using namespace std::chrono_literals;

// The time for which a text is reused, however many clients ask.
constexpr auto kTextLasts = 50ms;
// The pause after accepting a client failed for want of descriptors.
constexpr auto kAcceptPause = 100ms;

struct Door {
  Descriptor listener;
  Descriptor stop;
};

struct Server {
  std::mutex mutex;
  std::shared_ptr<Door> door;
  std::thread thread;
  std::atomic<bool> has_warned{false};
};

constinit PerProcess<Server> server;

std::string response(std::string_view status, std::string_view body) {
  return fmt::format(
      "HTTP/1.0 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: "
      "close\r\n\r\n{}",
      status, body.size(), body);
}

// Called by the serving thread alone.
std::string recent_text() {
  static thread_local std::string text;
  static thread_local Deadline lasts{};
  if (!lasts.passed()) return text;
  const auto pages = pages_from(::getpid());
  text = pages ? text_of(*pages, to_ms(Clock::now())) : std::string();
  lasts = Deadline::after(kTextLasts);
  return text;
}

// A client from its connection to the last byte of its answer.
class Client {
 public:
  explicit Client(Descriptor socket) : socket_(std::move(socket)) {}

  pollfd polled() const { return {socket_.get(), static_cast<short>(is_answering() ? POLLIN | POLLOUT : POLLIN), 0}; }
  Deadline deadline() const { return deadline_; }
  // Returns false if the client is served, has gone, or is too slow.
  bool advance() { return !deadline_.passed() && read() && write(); }

 private:
  bool is_answering() const { return written_ < answer_.size(); }

  // Reads even after the request: closing a socket with unread bytes would discard the answer.
  bool read() {
    std::array<char, 1024> buffer;
    const fccl::core::Transfer got = read_some(socket_.get(), buffer);
    if (got.closed || (got.error != 0 && got.error != EAGAIN)) return false;
    if (!answer_.empty()) return true;
    request_.append(buffer.data(), got.bytes);
    answer_ = answer_to(request_, recent_text);
    return true;
  }

  bool write() {
    if (!is_answering()) return true;
    const fccl::core::Transfer put = write_some(socket_.get(), std::string_view(answer_).substr(written_));
    if (put.error != 0 && put.error != EAGAIN) return false;
    written_ += put.bytes;
    if (!is_answering()) ::shutdown(socket_.get(), SHUT_WR);
    return true;
  }

  Descriptor socket_;
  Deadline deadline_ = Deadline::after(kPatience);
  std::string request_, answer_;
  size_t written_ = 0;
};

// The clients of a door, oldest first. Used by the serving thread.
class Clients {
 public:
  explicit Clients(const Door& door) : door_(door) {}

  // Serves until the order to stop.
  void serve() {
    while (wait()) {
      std::erase_if(clients_, [](Client& client) { return !client.advance(); });
      admit();
    }
  }

 private:
  bool wait() {
    polled_.assign({{door_.stop.get(), POLLIN, 0}, {paused_.passed() ? door_.listener.get() : -1, POLLIN, 0}});
    Deadline next = Deadline::after(1h);
    if (!paused_.passed()) next = paused_;
    for (const Client& client : clients_) {
      polled_.push_back(client.polled());
      if (client.deadline().at < next.at) next = client.deadline();
    }
    poll_until(polled_, next);
    return polled_[0].revents == 0;
  }

  void admit() {
    if (polled_[1].revents == 0) return;
    Connection connection = accept_one(door_.listener.get());
    if (connection.error == EAGAIN) return;
    if (!connection.socket) {
      paused_ = Deadline::after(kAcceptPause);
      return;
    }
    if (clients_.size() == kMostClients) clients_.pop_front();
    clients_.emplace_back(std::move(connection.socket));
  }

  const Door& door_;
  std::list<Client> clients_;
  std::vector<pollfd> polled_;
  Deadline paused_{};
};

bool is_served_by_another(uint16_t port) {
  const auto pages = pages_from(::getpid());
  return pages && std::ranges::any_of(*pages, [&](const PageCopy& page) {
           return page->process != ::getpid() && value_of(page->served_port) == port;
         });
}

}  // namespace

std::string answer_to(std::string_view request, std::string (*make_text)()) {
  if (request.size() > kLongestRequest) return response("431 Request Header Fields Too Large", "the request is too long\n");
  if (request.find("\r\n\r\n") == std::string_view::npos && request.find("\n\n") == std::string_view::npos) return {};
  if (!request.starts_with("GET ")) return response("405 Method Not Allowed", "the metrics of FCCL are read by GET\n");
  const std::string_view path = request.substr(4, request.find_first_of(" ?\r\n", 4) - 4);
  if (path != "/metrics" && path != "/") return response("404 Not Found", "the metrics of FCCL are at /metrics\n");
  return response("200 OK", make_text());
}

Result<void> serve(const Address& address) {
  Server& own = server.get();
  const std::lock_guard lock(own.mutex);
  if (own.door || is_served_by_another(address.port)) return {};
  FCCL_TRY_ASSIGN(Descriptor listener, listen_tcp(address));
  Descriptor stop(::eventfd(0, EFD_CLOEXEC));
  if (!stop) return fail(fcclSystemError, fmt::format("cannot make an eventfd: {}", error_text(errno)));
  auto door = std::make_shared<Door>(std::move(listener), std::move(stop));
  FCCL_TRY_ASSIGN(auto thread, start_thread({"fccl-metrics", "serves metrics"}, [door] { Clients(*door).serve(); }));
  call_when_unused(stop_serving_if_unused);
  own.thread = std::move(thread);
  own.door = std::move(door);
  page_of_process().served_port.store(address.port, std::memory_order_relaxed);
  return {};
}

void serve_if_asked(const Settings& settings) {
  if (settings.metrics_port == 0) return;
  const bool v6 = settings.metrics_address.find(':') != std::string::npos;
  const std::string where =
      fmt::format("{}{}{}:{}", v6 ? "[" : "", settings.metrics_address, v6 ? "]" : "", settings.metrics_port);
  const std::optional<Address> address = address_from(where);
  const Result<void> served = address ? serve(*address) : fail(fcclInvalidUsage, where + " is not an address in numbers");
  if (served || server.get().has_warned.exchange(true)) return;
  log(LogLevel::warn,
      fmt::format("the metrics of this host are not served: {}; FCCL_METRICS_PORT and FCCL_METRICS_ADDRESS decide where. "
                  "The job goes on without",
                  served.error().message));
}

void stop_serving_if_unused() {
  Server& own = server.get();
  const std::lock_guard lock(own.mutex);
  if (!own.door || has_communicators()) return;
  const uint64_t once = 1;
  (void)!::write(own.door->stop.get(), &once, sizeof once);
  own.thread.join();
  // A fork may still hold the socket, so closing it is not enough.
  shut(own.door->listener.get());
  own.door.reset();
  page_of_process().served_port.store(0, std::memory_order_relaxed);
}

}  // namespace fccl::core::metrics
