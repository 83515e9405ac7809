// Rail: one rail of an endpoint of a Fabric.
#include "transports/rail.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace fccl::core::simulated {

namespace {

void count(FaultCounts::Count& count, bool counts = true) {
  if (counts) count.fetch_add(1, std::memory_order_relaxed);
}

// Notes `place` as seen; true if a later one was seen before.
bool came_late(std::map<uint64_t, uint64_t>& latest, uint64_t link, uint64_t place) {
  uint64_t& last = latest[link];
  const bool late = place < last;
  last = std::max(last, place);
  return late;
}

}  // namespace

Rail::Rail(FabricState& fabric, std::shared_ptr<Inbox> inbox, uint64_t seed)
    : fabric_(fabric), inbox_(std::move(inbox)), dice_(seed) {}

bool Rail::full_for(const Link& link) {
  const Faults& faults = fabric_.options.faults;
  FaultCounts& counts = fabric_.counts;
  if (flights_.size() >= static_cast<size_t>(fabric_.options.limits.outstanding)) {
    count(counts.full_windows);
    return true;
  }
  const bool shaken = link.target->polls.load(std::memory_order_relaxed) > link.first_target_polls;
  if (faults.operations_before_handshake > 0 && !shaken &&
      link.posted >= static_cast<uint64_t>(faults.operations_before_handshake) && loss_to(link) == Loss::none) {
    count(counts.full_handshakes);
    return true;
  }
  const bool full = dice_.per_mille(faults.full_per_mille);
  count(counts.full_by_chance, full);
  return full;
}

void Rail::launch(const Operation& operation, Link& link, std::shared_ptr<Region> local) {
  auto flight = std::make_unique<Flight>();
  flight->operation = operation;
  flight->link = &link;
  flight->local = std::move(local);
  flight->target_polls = link.target->polls.load(std::memory_order_relaxed);
  if (link.posted == 0) link.first_target_polls = flight->target_polls;
  flight->place = ++link.posted;
  flight->outcome = std::make_shared<Outcome>();
  count(fabric_.counts.operations);
  cut(*flight);
  flights_.emplace(flight.get(), std::move(flight));
}

void Rail::cut(Flight& flight) {
  const Faults& faults = fabric_.options.faults;
  const size_t bytes = flight.operation.bytes;
  std::set<size_t> cuts{0};
  if (flight.operation.kind != Operation::Kind::message && bytes > 1) {
    for (uint64_t more = dice_.up_to(static_cast<uint64_t>(faults.fragments - 1)); more > 0; --more)
      cuts.insert(dice_.up_to(bytes - 1));
  }
  count(fabric_.counts.split, cuts.size() > 1);
  for (auto cut = cuts.begin(); cut != cuts.end(); ++cut) {
    const auto next = std::next(cut);
    const Fragment fragment{&flight, *cut, (next == cuts.end() ? bytes : *next) - *cut};
    const bool twice = flight.operation.kind != Operation::Kind::message && dice_.per_mille(faults.duplicates_per_mille);
    for (int copy = 0; copy < (twice ? 2 : 1); ++copy) {
      count(fabric_.counts.duplicated_fragments, copy > 0);
      schedule(fragment, now_ + 1);
      ++flight.fragments_left;
    }
  }
}

void Rail::schedule(Event event, uint64_t earliest) {
  const Faults& faults = fabric_.options.faults;
  const bool late = dice_.per_mille(500);
  const uint64_t due = earliest + (late ? dice_.up_to(static_cast<uint64_t>(faults.delay_polls)) : 0);
  const uint64_t turn = faults.reorders ? dice_.up_to(UINT64_MAX) : scheduled_;
  ++scheduled_;
  events_.emplace(std::pair(due, turn), std::move(event));
}

void Rail::poll(Found& found) {
  ++now_;
  inbox_->polls.fetch_add(1, std::memory_order_relaxed);
  inbox_->make_room(static_cast<int>(lent_.size()));
  for (auto& message : lent_) std::ranges::fill(message, std::byte{0xdd});
  lent_.clear();
  for (Link* link : links_) {
    const uint64_t polls = link->target->polls.load(std::memory_order_relaxed);
    link->open = polls > link->target_polls;
    link->target_polls = polls;
  }
  for (Notice& notice : inbox_->take()) schedule(std::move(notice), now_);
  for (auto event = events_.begin(); event != events_.end() && event->first.first <= now_;) {
    event = happen(event->second, found) ? events_.erase(event) : std::next(event);
  }
}

bool Rail::happen(Event& event, Found& found) {
  if (const auto* fragment = std::get_if<Fragment>(&event)) return move(*fragment);
  if (found.completions == found.room.size()) return false;
  if (const auto* ending = std::get_if<End>(&event)) return end(*ending->flight, found);
  return arrive(std::get<Notice>(event), found);
}

bool Rail::move(const Fragment& fragment) {
  Flight& flight = *fragment.flight;
  if (flight.result) {
    const Loss loss = loss_to(*flight.link);
    if (loss == Loss::silent) return false;
    if (loss == Loss::reported) {
      flight.result = fail(fcclRemoteError, fmt::format("endpoint {} is gone", flight.link->target_endpoint));
    } else {
      if (!lets_move(flight)) return false;
      if (flight.operation.kind != Operation::Kind::message) {
        flight.result = move_bytes(fragment);
      } else if (!bring_message(flight)) {
        return false;
      }
    }
  }
  count(fabric_.counts.interleaved_fragments, last_moved_ != nullptr && last_moved_ != &flight);
  last_moved_ = --flight.fragments_left == 0 ? nullptr : &flight;
  if (flight.fragments_left > 0) return true;
  if (flight.result && flight.operation.kind == Operation::Kind::write) {
    Notice notice = notice_of(flight);
    flight.link->target->put(notice);
  }
  schedule(End{&flight}, now_ + 1);
  return true;
}

bool Rail::lets_move(const Flight& flight) const {
  return !fabric_.options.needs_polling || (flight.link->open && flight.link->target_polls > flight.target_polls);
}

bool Rail::bring_message(Flight& flight) {
  Notice message = notice_of(flight);
  const auto* begin = static_cast<const std::byte*>(flight.operation.local);
  message.bytes.assign(begin, begin + flight.operation.bytes);
  if (flight.link->target->put(message)) return true;
  count(fabric_.counts.delayed_messages, !flight.waits_for_room);
  flight.waits_for_room = true;
  return false;
}

Result<void> Rail::move_bytes(const Fragment& fragment) {
  const Operation& operation = fragment.flight->operation;
  const Link& link = *fragment.flight->link;
  if (operation.bytes == 0) return {};
  const auto region = fabric_.region(Region::number_of(operation.remote.key));
  if (region == nullptr || region->endpoint != link.target_endpoint ||
      Region::rail_of(operation.remote.key) != link.target_rail) {
    return fabric_.misuse(fmt::format("operation {} names key {:#x}, which rail {} of endpoint {} never gave", operation.tag,
                                      operation.remote.key, link.target_rail, link.target_endpoint));
  }
  if (region->peers_may == PeersMay::nothing) {
    return fabric_.misuse(
        fmt::format("operation {} writes memory of endpoint {} that peers may not write", operation.tag, link.target_endpoint));
  }
  const std::scoped_lock lock(region->mutex);
  if (region->released) {
    return fail(fcclRemoteError, fmt::format("endpoint {} has released the memory", link.target_endpoint));
  }
  const uint64_t offset = operation.remote.address - region->address();
  if (offset > region->bytes.size() || operation.bytes > region->bytes.size() - offset) {
    return fabric_.misuse(fmt::format("operation {} goes {} bytes from offset {} of memory of {} bytes at endpoint {}",
                                      operation.tag, operation.bytes, static_cast<int64_t>(offset), region->bytes.size(),
                                      link.target_endpoint));
  }
  std::memmove(region->bytes.data() + offset + fragment.offset,
               static_cast<const std::byte*>(operation.local) + fragment.offset, fragment.bytes);
  return {};
}

bool Rail::end(Flight& flight, Found& found) {
  const Loss loss = loss_to(*flight.link);
  if (loss == Loss::silent) return false;
  if (loss == Loss::reported && flight.result) {
    flight.result = fail(fcclRemoteError, fmt::format("endpoint {} is gone", flight.link->target_endpoint));
  }
  const auto kind = flight.result ? Completion::Kind::ended : Completion::Kind::failed;
  found.room[found.completions++] = {.kind = kind, .tag = flight.operation.tag, .bytes = {}};
  count(fabric_.counts.reordered_ends, came_late(latest_ended_, flight.link->number, flight.place));
  flight.outcome->ended.store(true, std::memory_order_relaxed);
  count(fabric_.counts.arrived_first, flight.outcome->arrived.load(std::memory_order_relaxed));
  if (last_moved_ == &flight) last_moved_ = nullptr;
  const auto at = flights_.find(&flight);
  found.ended.push_back(std::move(at->second));
  flights_.erase(at);
  return true;
}

bool Rail::arrive(Notice& notice, Found& found) {
  Completion& completion = found.room[found.completions++];
  if (!knows(*notice.sender)) {
    if (notice.kind == Completion::Kind::message) inbox_->make_room(1);
    completion = {.kind = Completion::Kind::stranger, .bytes = {}};
    return true;
  }
  completion = {.kind = notice.kind, .immediate = notice.immediate, .bytes = {}};
  if (notice.kind == Completion::Kind::message) {
    lent_.push_back(std::move(notice.bytes));
    completion.bytes = lent_.back();
  }
  count(fabric_.counts.reordered_arrivals, came_late(latest_arrived_, notice.link, notice.place));
  notice.outcome->arrived.store(true, std::memory_order_relaxed);
  count(fabric_.counts.ended_first, notice.outcome->ended.load(std::memory_order_relaxed));
  return true;
}

bool Rail::knows(const Inbox& sender) const {
  return std::ranges::any_of(links_, [&](const Link* link) { return link->target.get() == &sender; });
}

Notice Rail::notice_of(const Flight& flight) const {
  const bool message = flight.operation.kind == Operation::Kind::message;
  const int bits = fabric_.options.limits.immediate_bits;
  return {.kind = message ? Completion::Kind::message : Completion::Kind::arrived,
          .immediate = message ? 0 : flight.operation.immediate & static_cast<uint32_t>((uint64_t{1} << bits) - 1),
          .bytes = {},
          .sender = inbox_.get(),
          .link = flight.link->number,
          .place = flight.place,
          .outcome = flight.outcome};
}

Loss Rail::loss_to(const Link& link) const {
  const Loss own = inbox_->loss.load(std::memory_order_relaxed);
  return own != Loss::none ? own : link.target->loss.load(std::memory_order_relaxed);
}

}  // namespace fccl::core::simulated
