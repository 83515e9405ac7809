// Connects the members of a wire lane, and sends messages.
#include "wire/lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/copy.h"
#include "wire/endpoint.h"
#include "wire/link.h"
#include "wire/port.h"

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
      links_(shape.ranks.size() - 1),
      landing_(shape_, *port, links_),
      payload_bytes_(port->shape().payload_bytes),
      stages_posted_(static_cast<size_t>(shape.stages)) {
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
  WireLink& link = links_[place(member)];
  link.rails = {std::min(mine.rails, other.rails), static_cast<size_t>(std::min(mine.write_bytes, other.write_bytes))};
  if (Stripes::of(shape_.slot_bytes, link.rails).count() > kMostStripes)
    return fail(fcclSystemError,
                fmt::format("the network to rank {} takes writes of {} bytes at most, which is too little for slots "
                            "of {}; a smaller slot helps",
                            rank_of(member), link.rails.write_bytes, shape_.slot_bytes));
  const int my_place = shape_.place_at(member);
  link.channel = other.first_channel + static_cast<uint32_t>(my_place);
  link.token = other.token;
  link.landing_offset = static_cast<size_t>(my_place) * shape_.window * shape_.slot_bytes;
  for (int i = 0; i < link.rails.number; ++i) {
    const Introduction::Rail& rail = other.rail[i];
    const std::span<const std::byte> address(rail.address.data(), std::min<size_t>(rail.address_bytes, rail.address.size()));
    Result<PeerId> id = endpoint_.connect(i, address);
    if (!id)
      return fail(id.error().code,
                  fmt::format("connecting to rank {} over rail {}: {}", rank_of(member), i, id.error().message));
    link.rail.push_back({*id, rail.landing});
  }
  payload_bytes_ = std::min(payload_bytes_, static_cast<size_t>(other.payload_bytes));
  return {};
}

bool WireLane::has_failed(int member) const { return port_->has_failed(place(member)); }

std::optional<Error> WireLane::failure_of(int rank) const {
  for (int i = 1; i < members(); ++i)
    if (rank_of(peer(i)) == rank && has_failed(peer(i))) return port_->error_of(place(peer(i)));
  return std::nullopt;
}

const WireLink& WireLane::link(int member) const { return links_[place(member)]; }

void WireLane::post(int member, std::span<std::byte> message, int end) {
  port_->post_message(links_[place(member)].rail[0].peer, message, Port::note(place(member), end));
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
  const size_t needed = Stripes::of(bytes, links_[place(member)].rails).count() + 4 * links_.size();
  return std::ranges::all_of(port_->queues, [&](const PostQueue& queue) { return queue.room() >= needed; });
}

void WireLane::send(int member, size_t bytes) {
  check(bytes <= shape_.slot_bytes, "a message fits into a slot");
  const WireLink& link = links_[place(member)];
  PortPeer& counts = port_->peers[place(member)];
  const uint64_t message = counts.sent.load(std::memory_order_relaxed);
  const uint64_t slot = message & static_cast<uint64_t>(shape_.window - 1);
  const uint32_t immediate = link.channel << kMessageBits | static_cast<uint32_t>(message & ((1 << kMessageBits) - 1));
  counts.sent.store(message + 1, std::memory_order_release);
  const Stripes stripes = Stripes::of(bytes, link.rails);
  for (size_t i = 0; i < stripes.count(); ++i) {
    // Messages of one stripe use the rails in turn.
    const int rail = static_cast<int>((message + i) % static_cast<uint64_t>(link.rails.number));
    RemoteMemory remote = link.rail[rail].landing;
    remote.address += link.landing_offset + slot * shape_.slot_bytes + stripes.offset(i);
    ++stages_posted_[stage_];
    port_->queues[rail].push({.kind = Operation::Kind::write,
                              .peer = link.rail[rail].peer,
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

int WireLane::still_taking() const {
  const int place = port_->still_taking();
  return place < 0 ? -1 : shape_.member_at(place);
}

}  // namespace fccl::core
