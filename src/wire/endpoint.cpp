// Polls, routes completions to ports, and posts.
#include "wire/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <thread>

#include "metrics/process_page.h"
#include "os/log.h"
#include "wire/port.h"

namespace fccl::core {
namespace {

// More operations in flight on a rail gain nothing.
constexpr int kLargestBudget = 1024;
// Number of completions, and of operations, that are handled together.
constexpr size_t kBatch = 32;

}  // namespace

// The right to use the transport and the tables. The hot path only tries to take it; rare calls wait for it.
class Endpoint::Turn {
 public:
  explicit Turn(Endpoint& endpoint) : endpoint_(endpoint) {
    while (!try_take()) std::this_thread::yield();
  }
  Turn(Endpoint& endpoint, std::try_to_lock_t) : endpoint_(endpoint) { try_take(); }
  ~Turn() {
    if (has_it_) endpoint_.taken_.store(false, std::memory_order_release);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  explicit operator bool() const { return has_it_; }

 private:
  bool try_take() {
    has_it_ = !endpoint_.taken_.load(std::memory_order_relaxed) && !endpoint_.taken_.exchange(true, std::memory_order_acquire);
    return has_it_;
  }

  Endpoint& endpoint_;
  bool has_it_ = false;
};

Endpoint::Endpoint(std::unique_ptr<Transport> transport, PolledBy polled_by)
    : transport_(std::move(transport)),
      page_(metrics::page_of_process()),
      flights_(limits().rails, std::min(limits().outstanding, kLargestBudget)) {
  if (polled_by == PolledBy::own_thread_too) thread_.emplace();
}

// The transport must end before the memory that it may still use.
Endpoint::~Endpoint() {
  if (thread_) thread_->stop();
  const uint64_t turned_away = transport_->turned_away();
  transport_.reset();
  if (strangers_ + turned_away > 0)
    log(LogLevel::warn,
        with_code(fmt::format("between hosts: {} messages and writes that no rank sent were dropped, {} attempts to connect "
                              "from machines without a rank were turned away",
                              strangers_, turned_away),
                  MessageKind::stray_total));
}

void Endpoint::progress() {
  const char* const observed = progress_in_turn();
  if (observed == nullptr) return;
  // This logs without the turn, since the reader of the log may be slow.
  log(LogLevel::warn,
      with_code(
          fmt::format(
              "between hosts: something came to this process over the network that no rank of its communicators sent: {}; it "
              "is dropped, and all that follows is dropped and counted. Let nobody but the hosts of the job reach their "
              "ports, and let no address be translated between them (docs/explanation/security.md)",
              observed),
          MessageKind::stray_message));
}

// Returns the description of the first stranger in the turn that has heard of it; otherwise null.
const char* Endpoint::progress_in_turn() {
  const Turn turn(*this, std::try_to_lock);
  if (!turn || broken_) return nullptr;
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  ++first_served_;
  // Queued operations are posted first, and again after the poll has made room.
  for (int rail = 0; rail < flights_.rails(); ++rail) {
    post(rail);
    poll(rail);
    post(rail);
  }
  return std::exchange(first_stranger_, nullptr);
}

void Endpoint::poll(int rail) {
  std::array<Completion, kBatch> found;
  const Result<size_t> number = transport_->poll(rail, found);
  if (!number) return fail_all({fcclSystemError, fmt::format("rail {} of the network: {}", rail, number.error().message)});
  for (size_t i = 0; i < *number; ++i) route(found[i]);
  if (*number > 0) finds_.store(finds_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void Endpoint::route(const Completion& completion) {
  switch (completion.kind) {
    case Completion::Kind::ended:
      return land(completion.tag, true);
    case Completion::Kind::failed:
      return land(completion.tag, false);
    case Completion::Kind::arrived: {
      const auto [port, peer] = find_channel(completion.immediate >> kMessageBits);
      if (port != nullptr) port->on_arrival(peer, completion.immediate & ((1 << kMessageBits) - 1));
      return;
    }
    case Completion::Kind::message:
      return on_message(completion.bytes);
    case Completion::Kind::stranger:
      return drop(completion.observed);
  }
}

void Endpoint::drop(const char* observed) {
  if (++strangers_ == 1) first_stranger_ = observed;
}

// Returns null for a channel that no open port has: a late message for a closed lane, or a stranger's.
std::pair<Port*, int> Endpoint::find_channel(uint32_t channel) const {
  const auto behind = std::ranges::upper_bound(ports_, channel, {}, [](const auto& port) { return port->first_channel(); });
  if (behind == ports_.begin()) return {nullptr, 0};
  Port& port = **std::prev(behind);
  const uint32_t peer = channel - port.first_channel();
  if (port.closed || peer >= port.peers.size()) return {nullptr, 0};
  return {&port, static_cast<int>(peer)};
}

void Endpoint::on_message(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(EntryMessage)) {
    drop("a message of a known sender that is shorter than any of FCCL");
    return;
  }
  uint32_t channel;
  std::memcpy(&channel, bytes.data() + offsetof(EntryMessage, channel), sizeof(channel));
  const auto [port, peer] = find_channel(channel);
  if (port != nullptr && !port->on_message(peer, bytes)) drop("a message of a known sender without its lane's token");
}

void Endpoint::land(uint64_t tag, bool well) {
  const std::optional<Flights::Flight> flight = flights_.end(tag);
  if (!flight)
    return fail_all({fcclInternalError, fmt::format("the transport ended operation {}, which it does not have", tag)});
  --flight->port->in_flight;
  if (well)
    flight->port->on_end(flight->note);
  else
    flight->port->on_failure(flight->note, transport_->error_of(tag));
}

// Each port comes first in turn, so that none waits for ever for room on a busy rail.
void Endpoint::post(int rail) {
  for (size_t i = 0; i < ports_.size(); ++i)
    if (!post_of(*ports_[(first_served_ + i) % ports_.size()], rail)) break;
}

void Endpoint::show_posted(int rail, std::span<const Operation> posted, size_t offered) {
  if (rail >= metrics::kRails) return;
  metrics::RailPart& part = page_.rails[static_cast<size_t>(rail)];
  uint64_t bytes = 0;
  for (const Operation& operation : posted) bytes += operation.bytes;
  part.bytes.fetch_add(bytes, std::memory_order_relaxed);
  part.messages.fetch_add(posted.size(), std::memory_order_relaxed);
  if (posted.size() < offered) part.retries.fetch_add(1, std::memory_order_relaxed);
}

bool Endpoint::post_of(Port& port, int rail) {
  PostQueue& queue = port.queues[rail];
  for (;;) {
    const std::span<const Operation> oldest = queue.oldest();
    const size_t number = std::min({oldest.size(), kBatch, flights_.room(rail)});
    if (number == 0 || port.closed || port.is_broken()) return flights_.room(rail) > 0;
    std::array<Operation, kBatch> batch;
    for (size_t i = 0; i < number; ++i) {
      batch[i] = oldest[i];
      batch[i].tag = flights_.next_tag(i);
    }
    const Result<size_t> posted = transport_->post(rail, std::span(batch).first(number));
    if (!posted) {
      port.on_failure(oldest[0].tag, posted.error());
      queue.take(1);
      continue;
    }
    for (size_t i = 0; i < *posted; ++i) flights_.begin({&port, oldest[i].tag, rail});
    show_posted(rail, std::span(batch).first(*posted), number);
    port.in_flight += static_cast<int>(*posted);
    queue.take(*posted);
    if (*posted < number) return true;
  }
}

void Endpoint::in_turn(const std::function<void()>& work) {
  const Turn turn(*this);
  work();
}

bool Endpoint::post_at_once(Port& port, Operation operation) {
  if (flights_.room(0) == 0 || port.closed || port.is_broken()) return false;
  const uint64_t note = std::exchange(operation.tag, flights_.next_tag(0));
  if (transport_->post(0, {&operation, 1}).value_or(0) == 0) return false;
  flights_.begin({&port, note, 0});
  show_posted(0, {&operation, 1}, 1);
  ++port.in_flight;
  return true;
}

void Endpoint::fail_all(const Error& error) {
  broken_ = true;
  for (const auto& port : ports_) port->break_with(error);
}

template <class Condition>
bool Endpoint::progress_until(Deadline deadline, Condition holds_of) {
  for (;;) {
    progress();
    {
      const Turn turn(*this);
      if (broken_ || std::ranges::all_of(ports_, [&](const auto& port) { return holds_of(*port); })) return true;
    }
    if (deadline.passed()) return false;
    std::this_thread::yield();
  }
}

bool Endpoint::settle(Deadline deadline) {
  return progress_until(deadline, [](const Port& port) { return port.is_settled(); });
}

bool Endpoint::await_taken(Deadline deadline) {
  return progress_until(deadline, [](const Port& port) { return port.is_settled() && port.is_taken(); });
}

std::vector<std::byte> Endpoint::address(int rail) {
  const Turn turn(*this);
  return transport_->address(rail);
}

Result<Port*> Endpoint::open(const PortShape& shape) {
  const Turn turn(*this);
  reap();
  if (thread_) FCCL_TRY(thread_->start(*this));
  FCCL_TRY(transport_->reserve_messages(shape.messages()));
  std::unique_ptr<Port> port;
  try {
    port = std::make_unique<Port>(shape, flights_.rails(), next_channel_);
  } catch (const std::bad_alloc&) {
    return fail(fcclSystemError,
                fmt::format("there is no memory for {} peers with {} slots of {} bytes each; a smaller window or "
                            "slot takes less",
                            shape.peers(), shape.window, shape.slot_bytes));
  }
  FCCL_TRY(port->memory.register_with(*transport_));
  next_channel_ += static_cast<uint32_t>(shape.peers());
  if (broken_) port->break_with({fcclSystemError, "the network has failed before this lane was opened"});
  ports_.push_back(std::move(port));
  return ports_.back().get();
}

void Endpoint::close(Port* port) {
  const Turn turn(*this);
  port->closed = true;
  reap();
}

void Endpoint::reap() {
  std::erase_if(ports_, [&](const std::unique_ptr<Port>& port) {
    if (!port->closed || port->in_flight > 0) return false;
    port->memory.release_from(*transport_);
    retired_.push_back(std::move(port->memory));
    return true;
  });
}

RemoteMemory Endpoint::landing_of(const Port& port, int rail) {
  const Turn turn(*this);
  return transport_->remote(port.memory.landing_id(), rail);
}

Result<PeerId> Endpoint::connect(int rail, std::span<const std::byte> address) {
  const Turn turn(*this);
  const std::pair key{rail, std::vector(address.begin(), address.end())};
  if (const auto known = peers_.find(key); known != peers_.end()) return known->second;
  const Result<PeerId> peer = transport_->connect(rail, address);
  if (peer) peers_.emplace(key, *peer);
  return peer;
}

}  // namespace fccl::core
