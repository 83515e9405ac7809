// Receives messages, and sends credits.
#include "wire/landing.h"

#include <algorithm>
#include <cstdint>

#include "kernels/copy.h"
#include "wire/lane_shape.h"
#include "wire/link.h"
#include "wire/port.h"

namespace fccl::core {

struct Landing::Peer {
  uint64_t received = kFirstMessage;
  uint64_t told = kFirstMessage;  // the count of consumed messages last told to it
  uint64_t credits_posted = 0;
  NoticesTaken taken{};  // the peer's notices, and what was last told to it of them
  NoticesTaken told_taken{};
  bool taken_is_due = false;
  std::vector<uint64_t> arrivals;  // by slot: arrivals of the messages received there
};

Landing::Landing(const WireLaneShape& shape, Port& port, const std::vector<WireLink>& links)
    : shape_(shape), port_(port), links_(links), peers_(links.size()) {
  for (Peer& peer : peers_) {
    peer.taken = peer.told_taken = {shape.first_sequence, shape.first_sequence};
    peer.arrivals.assign(static_cast<size_t>(shape.window), kFirstMessage);
  }
}

Landing::~Landing() = default;

Landing::Peer& Landing::peer_of(int member) { return peers_[shape_.place(member)]; }

const Landing::Peer& Landing::peer_of(int member) const { return peers_[shape_.place(member)]; }

size_t Landing::stripes_of(int member, size_t bytes) const {
  return Stripes::of(bytes, links_[shape_.place(member)].rails).count();
}

uint64_t Landing::consumed(int member) const {
  return port_.peers[shape_.place(member)].consumed.load(std::memory_order_relaxed);
}

bool Landing::has_arrived(int member, size_t bytes) const {
  const Peer& peer = peer_of(member);
  const uint64_t before = peer.arrivals[peer.received & static_cast<uint64_t>(shape_.window - 1)];
  const Awaited all{&port_.arrived(shape_.place(member), peer.received), before + stripes_of(member, bytes), -1};
  return all.reached();
}

const std::byte* Landing::message(int member) const {
  return port_.memory.landing(shape_.place(member), peer_of(member).received);
}

void Landing::receive(int member, size_t bytes) {
  Peer& peer = peer_of(member);
  peer.arrivals[peer.received & static_cast<uint64_t>(shape_.window - 1)] += stripes_of(member, bytes);
  ++peer.received;
}

void Landing::consume(int member) {
  port_.peers[shape_.place(member)].consumed.store(consumed(member) + 1, std::memory_order_release);
  grants_wait_ |= grant_is_due(member);
}

EntryMessage Landing::head_for(int member) {
  Peer& peer = peer_of(member);
  const WireLink& link = links_[shape_.place(member)];
  peer.told_taken = peer.taken;
  peer.taken_is_due = false;
  EntryMessage head;
  head.channel = link.channel;
  head.token = link.token;
  head.number = peer.taken.packed();
  head.consumed = peer.told = consumed(member);
  return head;
}

void Landing::set_taken(int member, const NoticesTaken& taken, bool is_due) {
  Peer& peer = peer_of(member);
  peer.taken = taken;
  peer.taken_is_due |= is_due;
  grants_wait_ |= grant_is_due(member);
}

const NoticesTaken& Landing::taken(int member) const { return peer_of(member).taken; }

const NoticesTaken& Landing::told_taken(int member) const { return peer_of(member).told_taken; }

// A credit is due after half a window: fewer credits would stop a sender, more would cost a message each.
bool Landing::grant_is_due(int member) const {
  const Peer& peer = peer_of(member);
  return peer.taken_is_due || consumed(member) - peer.told >= static_cast<uint64_t>(std::max(1, shape_.window / 2));
}

bool Landing::owes_credit(int member) const {
  const Peer& peer = peer_of(member);
  return consumed(member) != peer.told || peer.taken.packed() != peer.told_taken.packed();
}

// A peer whose last credit is still in flight is told later.
void Landing::grant() {
  if (!grants_wait_) return;
  grants_wait_ = false;
  for (int i = 1; i < shape_.members(); ++i) {
    const int member = shape_.peer(i);
    if (!grant_is_due(member)) continue;
    if (!send_credit(member)) grants_wait_ = true;
  }
}

bool Landing::grant_rest() {
  bool all = true;
  for (int i = 1; i < shape_.members(); ++i) {
    const int member = shape_.peer(i);
    if (owes_credit(member) && !port_.has_failed(shape_.place(member))) all &= send_credit(member);
  }
  return all;
}

bool Landing::send_credit(int member) {
  Peer& peer = peer_of(member);
  const int place = shape_.place(member);
  const int end = port_.end_of_credit(place);
  if (!Awaited{&port_.ends[end].value, peer.credits_posted, -1}.reached()) return false;
  const EntryMessage credit = head_for(member);
  std::byte* const message = port_.memory.credit(place);
  copy_bytes(message, &credit, sizeof(credit));
  ++peer.credits_posted;
  port_.post_message(links_[place].rail[0].peer, {message, sizeof(credit)}, Port::note(place, end));
  return true;
}

}  // namespace fccl::core
