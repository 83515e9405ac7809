// Sends and receives the entries, credits and messages of a wire lane.
#include "wire/lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/copy.h"
#include "wire/endpoint.h"

namespace fccl::core {
namespace {

PortShape port_shape(const WireLaneShape& shape, const TransportLimits& limits) {
  PortShape port{.ranks = {},
                 .window = shape.window,
                 .slot_bytes = shape.slot_bytes,
                 .stages = shape.stages,
                 .payload_bytes = std::min(shape.payload_bytes, limits.message_bytes - sizeof(EntryMessage)),
                 .first_sequence = shape.first_sequence,
                 .token = shape.token,
                 .notices = shape.notices,
                 .notices_out = shape.notices_out};
  for (int member = 0; member < shape.members(); ++member)
    if (member != shape.me) port.ranks.push_back(shape.ranks[member]);
  return port;
}

}  // namespace

Result<std::unique_ptr<WireLane>> WireLane::open(Endpoint& endpoint, const WireLaneShape& shape) {
  if (endpoint.limits().message_bytes < sizeof(EntryMessage))
    return fail(fcclSystemError, fmt::format("the transport takes messages of {} bytes, but an entry has {}",
                                             endpoint.limits().message_bytes, sizeof(EntryMessage)));
  FCCL_TRY_ASSIGN(Port * port, endpoint.open(port_shape(shape, endpoint.limits())));
  return std::unique_ptr<WireLane>(new WireLane(endpoint, shape, port));
}

WireLane::WireLane(Endpoint& endpoint, const WireLaneShape& shape, Port* port)
    : sources(shape.ranks.size()),
      holds(shape.ranks.size()),
      endpoint_(endpoint),
      shape_(shape),
      port_(port),
      peers_(shape.ranks.size() - 1),
      payload_bytes_(port->shape().payload_bytes),
      sequence_(shape.first_sequence - 1),
      stages_posted_(static_cast<size_t>(shape.stages)) {
  for (Peer& peer : peers_) peer.taken = peer.told_taken = {shape.first_sequence, shape.first_sequence};
  const TransportLimits& limits = endpoint.limits();
  introduction_ = {.members = shape.members(),
                   .window = shape.window,
                   .slot_bytes = shape.slot_bytes,
                   .write_bytes = limits.write_bytes,
                   .payload_bytes = payload_bytes_,
                   .immediate_bits = limits.immediate_bits,
                   .rails = std::min(limits.rails, Introduction::kMostRails),
                   .first_channel = port->first_channel(),
                   .token = shape.token,
                   .rail = {}};
  for (int i = 0; i < introduction_.rails; ++i) {
    const std::vector<std::byte> address = endpoint.address(i);
    Introduction::Rail& rail = introduction_.rail[i];
    check(address.size() <= rail.address.size(), "a transport's address has at most kAddressBytes");
    rail.address_bytes = static_cast<uint32_t>(address.size());
    copy_bytes(rail.address.data(), address.data(), address.size());
    rail.landing = endpoint.landing_of(*port, i);
  }
}

WireLane::~WireLane() { endpoint_.close(port_); }

void WireLane::progress() { endpoint_.progress(); }

Result<void> WireLane::connect(std::span<const Introduction> all) {
  check(all.size() == shape_.ranks.size(), "every member introduces itself");
  for (int i = 1; i < members(); ++i)
    if (all[peer(i)].rails > 0) FCCL_TRY(connect(peer(i), all[peer(i)]));
  return {};
}

Result<void> WireLane::connect(int member, const Introduction& other) {
  const Introduction& mine = introduction_;
  if (other.members != mine.members || other.window != mine.window || other.slot_bytes != mine.slot_bytes)
    return fail(fcclInvalidUsage,
                fmt::format("rank {} has a column of {} members with {} slots of {} bytes, this rank one of {} with {} of {}; "
                            "the settings must be equal on all ranks",
                            rank_of(member), other.members, other.window, other.slot_bytes, mine.members, mine.window,
                            mine.slot_bytes));
  const int bits = std::min(mine.immediate_bits, other.immediate_bits) - kMessageBits;
  const uint64_t channels = uint64_t{other.first_channel} + static_cast<uint64_t>(other.members - 1);
  if (other.rails < 1 || other.rails > Introduction::kMostRails || other.write_bytes == 0 || bits < 0 ||
      channels > uint64_t{1} << bits)
    return fail(fcclSystemError,
                fmt::format("rank {} offers {} rails, writes of {} bytes and channel {} in {} bits, which cannot be "
                            "used; too many communicators may be open",
                            rank_of(member), other.rails, other.write_bytes, other.first_channel, bits));
  Peer& peer = peer_of(member);
  peer.rails = {std::min(mine.rails, other.rails), static_cast<size_t>(std::min(mine.write_bytes, other.write_bytes))};
  if (Stripes::of(shape_.slot_bytes, peer.rails).count() > kMostStripes)
    return fail(fcclSystemError,
                fmt::format("the network to rank {} takes writes of {} bytes at most, which is too little for slots "
                            "of {}; a smaller slot helps",
                            rank_of(member), peer.rails.write_bytes, shape_.slot_bytes));
  const int my_place = me() < member ? me() : me() - 1;
  peer.channel = other.first_channel + static_cast<uint32_t>(my_place);
  peer.token = other.token;
  peer.landing_offset = static_cast<size_t>(my_place) * shape_.window * shape_.slot_bytes;
  peer.arrivals.assign(static_cast<size_t>(shape_.window), kFirstMessage);
  for (int i = 0; i < peer.rails.number; ++i) {
    const Introduction::Rail& rail = other.rail[i];
    const std::span<const std::byte> address(rail.address.data(), std::min<size_t>(rail.address_bytes, rail.address.size()));
    Result<PeerId> id = endpoint_.connect(i, address);
    if (!id)
      return fail(id.error().code,
                  fmt::format("connecting to rank {} over rail {}: {}", rank_of(member), i, id.error().message));
    peer.rail.push_back({*id, rail.landing});
  }
  payload_bytes_ = std::min(payload_bytes_, static_cast<size_t>(other.payload_bytes));
  return {};
}

std::optional<Error> WireLane::failure_of(int rank) const {
  for (int i = 1; i < members(); ++i)
    if (rank_of(peer(i)) == rank && has_failed(peer(i))) return port_->error_of(place(peer(i)));
  return std::nullopt;
}

void WireLane::begin(const CallInFull& call) {
  ++sequence_;
  call_ = call;
  word_ = uint64_t{sequence_} << 32 | hash_of(call.signature, static_cast<uint32_t>(call.number));
  port_->sequence.store(sequence_, std::memory_order_release);
}

Awaited WireLane::may_enter(int member) const {
  const int parity = static_cast<int>(sequence_ & 1);
  const Counter& ended = port_->ends[port_->end_of_entry(place(member), parity)];
  return {&ended.value, peer_of(member).entries_posted[parity], rank_of(member)};
}

void WireLane::enter(int member, const void* payload, size_t bytes) {
  check(bytes <= payload_bytes_, "a payload fits behind its entry");
  const int parity = static_cast<int>(sequence_ & 1);
  EntryMessage entry = head_for(member);
  entry.set_call(call_);
  entry.kind = EntryMessage::kCall;
  entry.sequence = sequence_;
  entry.hash = static_cast<uint32_t>(word_);
  std::byte* message = port_->memory.entry(place(member), parity);
  copy_bytes(message, &entry, sizeof(entry));
  copy_bytes(message + sizeof(entry), payload, bytes);
  ++peer_of(member).entries_posted[parity];
  post(member, message, sizeof(entry) + bytes, port_->end_of_entry(place(member), parity));
}

EntryMessage WireLane::head_for(int member) {
  Peer& peer = peer_of(member);
  peer.told_taken = peer.taken;
  peer.taken_is_due = false;
  EntryMessage head;
  head.channel = peer.channel;
  head.token = peer.token;
  head.number = peer.taken.packed();
  head.consumed = peer.told = consumed(member);
  return head;
}

void WireLane::post(int member, std::byte* bytes, size_t size, int end) {
  check(port_->queues[0].room() > 0, "a queue has room for all entries and credits that can be on their way");
  port_->queues[0].push({.kind = Operation::Kind::message,
                         .peer = peer_of(member).rail[0].peer,
                         .memory = port_->memory.outgoing_id(),
                         .local = bytes,
                         .bytes = size,
                         .remote = {},
                         .immediate = 0,
                         .tag = Port::note(place(member), end)});
}

Awaited WireLane::entered(int member) const { return {&box_of(member).word, uint64_t{sequence_} << 32, rank_of(member)}; }

std::span<const std::byte> WireLane::payload_of(int member) const {
  const EntryBox& box = box_of(member);
  return {box.payload.data(), box.payload_bytes};
}

std::optional<CallInFull> WireLane::call_numbered(uint64_t number, int member) const {
  for (const EntryBox& box : port_->peers[place(member)].boxes)
    if (box.number.load(std::memory_order_acquire) == number) return box.call;
  return std::nullopt;
}

std::byte* WireLane::take_stage() {
  for (int i = 1; i <= shape_.stages; ++i) {
    const int next = (stage_ + i) % shape_.stages;
    const Awaited ended{&port_->ends[port_->end_of_stage(next)].value, stages_posted_[next], -1};
    if (!ended.reached()) continue;
    stage_ = next;
    return port_->memory.stage(next);
  }
  return nullptr;
}

bool WireLane::can_send(int member, size_t bytes) const {
  const PortPeer& counts = port_->peers[place(member)];
  const uint64_t on_their_way = counts.sent.load(std::memory_order_relaxed) - counts.granted.load(std::memory_order_acquire);
  if (on_their_way >= static_cast<uint64_t>(shape_.window)) return false;
  // Entries and credits must always find room.
  const size_t needed = Stripes::of(bytes, peer_of(member).rails).count() + 4 * peers_.size();
  return std::ranges::all_of(port_->queues, [&](const PostQueue& queue) { return queue.room() >= needed; });
}

void WireLane::send(int member, size_t bytes) {
  check(bytes <= shape_.slot_bytes, "a message fits into a slot");
  const Peer& peer = peer_of(member);
  PortPeer& counts = port_->peers[place(member)];
  const uint64_t message = counts.sent.load(std::memory_order_relaxed);
  const uint64_t slot = message & static_cast<uint64_t>(shape_.window - 1);
  const uint32_t immediate = peer.channel << kMessageBits | static_cast<uint32_t>(message & ((1 << kMessageBits) - 1));
  counts.sent.store(message + 1, std::memory_order_release);
  const Stripes stripes = Stripes::of(bytes, peer.rails);
  for (size_t i = 0; i < stripes.count(); ++i) {
    // Messages of one stripe use the rails in turn.
    const int rail = static_cast<int>((message + i) % static_cast<uint64_t>(peer.rails.number));
    RemoteMemory remote = peer.rail[rail].landing;
    remote.address += peer.landing_offset + slot * shape_.slot_bytes + stripes.offset(i);
    ++stages_posted_[stage_];
    port_->queues[rail].push({.kind = Operation::Kind::write,
                              .peer = peer.rail[rail].peer,
                              .memory = port_->memory.outgoing_id(),
                              .local = port_->memory.stage(stage_) + stripes.offset(i),
                              .bytes = stripes.bytes(i),
                              .remote = remote,
                              .immediate = immediate,
                              .tag = Port::note(place(member), port_->end_of_stage(stage_))});
  }
}

bool WireLane::all_posted() const {
  return std::ranges::all_of(port_->queues, [](const PostQueue& queue) { return queue.is_empty(); });
}

bool WireLane::has_arrived(int member, size_t bytes) const {
  const Peer& peer = peer_of(member);
  const uint64_t before = peer.arrivals[peer.received & static_cast<uint64_t>(shape_.window - 1)];
  const Awaited all{&port_->arrived(place(member), peer.received), before + Stripes::of(bytes, peer.rails).count(), -1};
  return all.reached();
}

const std::byte* WireLane::landing(int member) const { return port_->memory.landing(place(member), peer_of(member).received); }

void WireLane::receive(int member, size_t bytes) {
  Peer& peer = peer_of(member);
  peer.arrivals[peer.received & static_cast<uint64_t>(shape_.window - 1)] += Stripes::of(bytes, peer.rails).count();
  ++peer.received;
}

void WireLane::consume(int member) {
  port_->peers[place(member)].consumed.store(consumed(member) + 1, std::memory_order_release);
  grants_wait_ |= grant_is_due(member);
}

// A credit is due after half a window: fewer credits would stop a sender, more would cost a message each.
bool WireLane::grant_is_due(int member) const {
  const Peer& peer = peer_of(member);
  return peer.taken_is_due || consumed(member) - peer.told >= static_cast<uint64_t>(std::max(1, shape_.window / 2));
}

void WireLane::set_taken(int member, const NoticesTaken& taken, bool is_due) {
  Peer& peer = peer_of(member);
  peer.taken = taken;
  peer.taken_is_due |= is_due;
  grants_wait_ |= grant_is_due(member);
}

bool WireLane::owes_credit(int member) const {
  const Peer& peer = peer_of(member);
  return consumed(member) != peer.told || peer.taken.packed() != peer.told_taken.packed();
}

// A peer whose last credit is still in flight is told later.
void WireLane::grant() {
  if (!grants_wait_) return;
  grants_wait_ = false;
  for (int i = 1; i < members(); ++i) {
    const int member = this->peer(i);
    if (!grant_is_due(member)) continue;
    if (!send_credit(member)) grants_wait_ = true;
  }
}

bool WireLane::grant_rest() {
  bool all = true;
  for (int i = 1; i < members(); ++i) {
    const int member = this->peer(i);
    if (owes_credit(member) && !has_failed(member)) all &= send_credit(member);
  }
  return all;
}

bool WireLane::send_credit(int member) {
  Peer& peer = peer_of(member);
  const int end = port_->end_of_credit(place(member));
  if (!Awaited{&port_->ends[end].value, peer.credits_posted, -1}.reached()) return false;
  const EntryMessage credit = head_for(member);
  copy_bytes(port_->memory.credit(place(member)), &credit, sizeof(credit));
  ++peer.credits_posted;
  post(member, port_->memory.credit(place(member)), sizeof(credit), end);
  return true;
}

}  // namespace fccl::core
