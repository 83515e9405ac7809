// Serves strangers by turns, and gives up the oldest one when descriptors run out.
#include "channels/acceptor.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <tuple>
#include <utility>

#include "os/error_text.h"
#include "sockets/socket.h"

namespace fccl::core {
namespace {

using namespace std::chrono_literals;

constexpr size_t kMostClients = 256;
constexpr size_t kFewestClients = 16;
constexpr auto kHandshakeTime = 5s;
// A client keeps its descriptor at least that long even when others get none, since a client that is dropped comes again.
constexpr auto kLeastTime = 250ms;
// Few enough that the connections already accepted get their turn in a flood.
constexpr int kAcceptsPerTurn = 64;
constexpr auto kRestWithoutDescriptors = 20ms;
// A shortage that lasts that long is taken to be permanent.
constexpr auto kLongShortage = 500ms;

// Returns an eighth of the descriptors that this process may have, so that strangers leave it enough for its own use.
size_t most_clients() {
  rlimit descriptors{};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return kFewestClients;
  return std::clamp<size_t>(descriptors.rlim_cur / 8, kFewestClients, kMostClients);
}

}  // namespace

Acceptor::Acceptor(int listener, const Key& key, const Party& self)
    : listener_(listener), key_(key), self_(self), most_clients_(most_clients()) {}

void Acceptor::watch(std::vector<pollfd>& set) const {
  set.push_back({listener_, static_cast<short>(rest_.passed() ? POLLIN : 0), 0});
  for (const Client& client : clients_) set.push_back({client.channel.socket(), client.channel.events(), 0});
}

Deadline Acceptor::patience() const {
  Deadline first = Deadline::after(1h);
  if (!clients_.empty()) first.at = std::min(first.at, clients_.front().deadline.at);
  if (!rest_.passed()) first.at = std::min(first.at, rest_.at);
  return first;
}

std::list<Channel> Acceptor::admit(std::span<const pollfd> polled) {
  std::list<Channel> admitted;
  auto client = clients_.begin();
  for (const pollfd& entry : polled.subspan(1)) {
    const bool good = entry.revents == 0 || client->channel.pump();
    if (good && client->channel.open()) admitted.push_back(std::move(client->channel));
    if (!good || client->channel.socket() < 0 || client->deadline.passed())
      client = clients_.erase(client);
    else
      ++client;
  }
  if (polled.front().revents != 0)
    accept_waiting();
  else if (polled.front().events != 0)
    short_of_ = 0;
  return admitted;
}

int Acceptor::shortage() const { return short_of_ != 0 && Clock::now() - short_since_ > kLongShortage ? short_of_ : 0; }

void Acceptor::accept_waiting() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    Connection connection = accept_one(listener_);
    if (!is_short_of_descriptors(connection.error)) short_of_ = 0;
    if (connection.socket) {
      if (clients_.size() == most_clients_) clients_.pop_front();
      clients_.push_back(
          {Channel(std::move(connection.socket), Conversation(Role::listens, key_, self_)), Deadline::after(kHandshakeTime)});
      continue;
    }
    if (connection.error == EAGAIN) return;
    if (spends_spares_ && clients_.empty() && spares_.spend()) continue;
    // accept(2) reports a lack of descriptors or memory even when no connection waits: the oldest stranger gives its descriptor
    // back first.
    if (!clients_.empty() && clients_.front().deadline.at < Clock::now() + kHandshakeTime - kLeastTime)
      clients_.pop_front();
    else if (short_of_ == 0 && is_short_of_descriptors(connection.error))
      std::tie(short_of_, short_since_) = std::pair(connection.error, Clock::now());
    rest_ = Deadline::after(kRestWithoutDescriptors);
    return;
  }
}

}  // namespace fccl::core
