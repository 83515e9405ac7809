// Keeps the state of each address, and searches for the connections with peers.
#include "ofi/contacts.h"

#include <algorithm>

#include "ofi/address.h"
#include "ofi/endpoint.h"
#include "ofi/gate.h"

namespace fccl::core::ofi {
namespace {

// Interval between searches for new connections, since many peers may connect at once.
constexpr std::chrono::milliseconds kBetweenLooks{20};

}  // namespace

void Contacts::add(fi_addr_t peer, const SocketName& name) {
  names_.push_back(name);
  if (state_of_.size() <= peer) state_of_.resize(peer + 1, State::stranger);
  if (State& state = state_of_[peer]; state == State::stranger) state = State::added;
}

void Contacts::close_connections_on_exec(const Endpoint& endpoint) {
  const Time now = std::chrono::steady_clock::now();
  if (now - looked_ < kBetweenLooks) return;
  looked_ = now;
  has_new_ = false;
  std::vector<SocketName> names = names_;
  std::ranges::sort(names);
  const auto own = name_of(endpoint);
  if (!own) return;
  for (const int accepted : ofi::close_connections_on_exec(*own, names)) Gate::open_connection(accepted);
}

}  // namespace fccl::core::ofi
