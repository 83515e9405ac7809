// Matches sends and receives, and moves bytes between this rank and each peer.
#include "transfers/transfer_lane.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "host/route.h"
#include "metrics/statistics.h"
#include "os/memory.h"
#include "segment/peer_memory.h"
#include "transfers/host_pair.h"
#include "transfers/wire_pair.h"
#include "wire/lane.h"
#include "wire/notice_lane.h"

namespace fccl::core {
namespace {

// Slices of one direction of a pair that move before others get a turn.
constexpr int kSlicesPerTurn = 4;

// Number of bytes read at once: between two pieces others get a turn, and every piece has the whole deadline.
constexpr size_t kPiece = 1 << 20;
// Number of bytes that a sender brings into memory at once before it lends them.
constexpr size_t kBroughtIn = 16 << 20;

uint64_t tag_key(int32_t tag) { return static_cast<uint32_t>(tag); }

bool is_moved(const TransferOperation& operation) { return operation.moved == operation.transfer.envelope.bytes(); }

// Returns true once all of it is in memory.
bool bring_in_more(TransferOperation& operation) {
  const size_t bytes = std::min(kBroughtIn, operation.transfer.envelope.bytes() - operation.moved);
  bring_in(static_cast<const std::byte*>(operation.transfer.source) + operation.moved, bytes);
  operation.moved += bytes;
  if (!is_moved(operation)) return false;
  operation.moved = 0;
  return true;
}

}  // namespace

// This rank's state towards another one.
struct TransferLane::Peer {
  int rank = 0;
  std::unique_ptr<TransferPair> pair;  // null: the rank cannot be reached yet
  std::optional<int> here;             // its number among the ranks of this host, if it is one
  int interest = 0;                    // operations that involve this peer
  TransferQueue announcing, sending;
  KeyedQueue<TransferOperation> offered;  // by the number of the offer
  TransferQueue reading, granting, receiving;
};

// A notice that no receive has asked for yet.
struct TransferLane::Arrival {
  Notice notice;
  int source = 0;
  const std::byte* payload = nullptr;
  std::vector<std::byte> room;  // for a payload that does not stay where it came

  Arrival* next = nullptr;
  uint64_t key = 0;
};

TransferLane::TransferLane(std::shared_ptr<Segment> segment, std::span<const int> ranks, int local, int all,
                           Statistics& statistics)
    : segment_(std::move(segment)), statistics_(statistics), peers_(static_cast<size_t>(all)) {
  for (int rank = 0; rank < all; ++rank) peers_[rank].rank = rank;
  for (size_t place = 0; place < ranks.size(); ++place) {
    Peer& peer = peers_[ranks[place]];
    peer.here = static_cast<int>(place);
    peer.pair = std::make_unique<HostPair>(segment_, local, *peer.here);
  }
}

void TransferLane::span_hosts(std::unique_ptr<NoticeLane> network, std::span<const int> ranks_here) {
  network_ = std::move(network);
  for (Peer& peer : peers_)
    if (std::ranges::find(ranks_here, peer.rank) == ranks_here.end())
      peer.pair = std::make_unique<WirePair>(*network_, peer.rank, segment_->shape().mailbox_bytes);
}

TransferLane::~TransferLane() {
  // Arrivals outside the queue are in spare_arrivals_, which owns them.
  while (Arrival* arrival = arrivals_.take_any()) delete arrival;
}

void TransferLane::read_from(std::shared_ptr<const PeerMemory> memory, size_t least) {
  memory_ = std::move(memory);
  least_read_ = least;
}

void TransferLane::leave_network_alone() { (void)network_.release(); }

std::optional<Error> TransferLane::network_failure_of(int rank) const {
  return network_ ? network_->wire().failure_of(rank) : std::nullopt;
}

bool TransferLane::has_failed() const { return segment_->failure().first.load(std::memory_order_acquire) != 0; }

void TransferLane::leave(Deadline deadline) {
  const std::lock_guard turn(mutex_);
  if (!network_ || has_failed()) return;
  for (bool all_told = false; (!all_told || !network_->wire().all_posted()) && !deadline.passed(); std::this_thread::yield()) {
    all_told = network_->wire().landing().grant_rest();
    network_->wire().progress();
  }
}

void TransferLane::issue(TransferOperation& operation) {
  const std::lock_guard turn(mutex_);
  issued_.push(operation, tag_key(operation.transfer.envelope.tag));
  operation.has_place = true;
}

bool TransferLane::start(TransferOperation& operation) {
  Turn turn(*this);
  if (!turn.start(operation)) return false;
  turn.progress();
  return true;
}

// An operation without a place comes after all that have one.
bool TransferLane::Turn::start(TransferOperation& operation) {
  const TransferEnd& transfer = operation.transfer;
  const uint64_t key = tag_key(transfer.envelope.tag);
  const TransferOperation* const first = lane_.issued_.find_if(
      key, [&](const TransferOperation& each) { return &each == &operation || each.transfer.shares_order_with(transfer); });
  if (first != nullptr && first != &operation) {
    if (!std::exchange(operation.has_place, true)) lane_.issued_.push(operation, key);
    return false;
  }
  if (first == &operation) lane_.issued_.remove(operation);
  operation.has_started = true;
  if (transfer.envelope.bytes() > lane_.segment_->shape().eager_bytes()) operation.began = Clock::now();
  if (transfer.direction == Direction::receive) {
    lane_.begin_receive(operation);
    return true;
  }
  Peer& target = lane_.peers_[transfer.peer];
  ++target.interest;
  target.announcing.push(operation);
  if (target.pair && !lane_.has_failed()) lane_.announce(target);
  return true;
}

void TransferLane::progress() {
  const std::unique_lock turn(mutex_, std::try_to_lock);
  if (turn) progress_in_turn();
}

void TransferLane::catch_up() {
  const std::lock_guard turn(mutex_);
  progress_in_turn();
}

void TransferLane::progress_in_turn() {
  if (has_failed()) return;
  if (network_) network_->wire().progress();
  for (Peer& peer : peers_)
    if (peer.pair && (peer.interest > 0 || any_source_ > 0)) move(peer);
  if (network_) network_->wire().landing().grant();
}

void TransferLane::begin_receive(TransferOperation& operation) {
  const TransferEnd& transfer = operation.transfer;
  ++(transfer.peer == FCCL_ANY_SOURCE ? any_source_ : peers_[transfer.peer].interest);
  const uint64_t key = tag_key(transfer.envelope.tag);
  Arrival* const found =
      arrivals_.remove_if(key, [&](const Arrival& each) { return transfer.takes(each.source, each.notice.tag); });
  if (found == nullptr) return posted_.push(operation, key);
  std::unique_ptr<Arrival> arrival(found);
  Peer& source = peers_[arrival->source];
  match(operation, source, {arrival->notice, arrival->payload});
  spare_arrivals_.push_back(std::move(arrival));
}

void TransferLane::move(Peer& peer) {
  take_notices(peer);
  announce(peer);
  read_lent(peer);
  grant(peer);
  send_slices(peer);
  receive_slices(peer);
}

void TransferLane::take_notices(Peer& peer) {
  TransferPair& pair = *peer.pair;
  while (const std::optional<TransferPair::Incoming> next = pair.next()) {
    const Notice& notice = next->notice;
    if (notice.kind == Notice::kGrant || notice.kind == Notice::kRead) {
      TransferOperation* taken = peer.offered.remove_if(notice.transfer, [](const TransferOperation&) { return true; });
      if (taken != nullptr) notice.kind == Notice::kRead ? finish(*taken) : peer.sending.push(*taken);
    } else if (TransferOperation* receive = posted_.remove_if(tag_key(notice.tag), [&](const TransferOperation& each) {
                 return each.transfer.takes(peer.rank, notice.tag);
               })) {
      match(*receive, peer, *next);
    } else {
      keep_arrival(peer, *next);
    }
    pair.take();
  }
}

void TransferLane::keep_arrival(Peer& peer, const TransferPair::Incoming& next) {
  std::unique_ptr<Arrival> arrival;
  if (spare_arrivals_.empty()) {
    arrival = std::make_unique<Arrival>();
  } else {
    arrival = std::move(spare_arrivals_.back());
    spare_arrivals_.pop_back();
  }
  arrival->notice = next.notice;
  arrival->source = peer.rank;
  arrival->payload = peer.pair->keep(next, arrival->room);
  arrivals_.push(*arrival.release(), tag_key(next.notice.tag));
}

// Gives a notice that has come to this receive, which is in no queue.
void TransferLane::match(TransferOperation& operation, Peer& source, const TransferPair::Incoming& incoming) {
  const Notice& notice = incoming.notice;
  if (operation.transfer.peer == FCCL_ANY_SOURCE) {
    --any_source_;
    ++source.interest;
  }
  operation.other.store(source.rank, std::memory_order_relaxed);
  const size_t bytes = operation.transfer.envelope.bytes();
  const bool is_eager = notice.kind == Notice::kEager;
  if (notice.envelope() != operation.transfer.envelope || (is_eager && bytes > source.pair->eager_bytes())) {
    operation.differs = true;
    operation.theirs = notice.envelope();
  } else if (is_eager) {
    copy_bytes(operation.transfer.target, incoming.payload, bytes);
  }
  if (is_eager) source.pair->release(notice);
  if (is_eager || operation.differs) return finish(operation);
  operation.number = notice.transfer;
  if (reads(source, operation)) std::memcpy(static_cast<void*>(&operation.lent), incoming.payload, sizeof operation.lent);
  (operation.lent != nullptr ? source.reading : source.granting).push(operation);
  step(operation);
}

void TransferLane::announce(Peer& peer) {
  TransferPair& pair = *peer.pair;
  while (TransferOperation* operation = peer.announcing.front()) {
    // The look comes first: a short send that finds no room for its notice must not be offered because room came meanwhile.
    if (!pair.can_post()) return;
    const TransferEnd& transfer = operation->transfer;
    const Envelope& envelope = transfer.envelope;
    Notice notice{.dtype = static_cast<uint8_t>(envelope.dtype), .tag = envelope.tag, .count = envelope.count};
    if (pair.post_eager(notice, transfer.source, envelope.bytes())) {
      peer.announcing.pop();
      finish(*operation);
      continue;
    }
    const bool lends = reads(peer, *operation);
    if (lends && !bring_in_more(*operation)) return step(*operation);
    peer.announcing.pop();
    notice.kind = Notice::kOffer;
    notice.transfer = operation->number = ++offers_;
    pair.post(notice, lends ? transfer.source : nullptr);
    peer.offered.push(*operation, operation->number);
    step(*operation);
  }
}

bool TransferLane::reads(const Peer& peer, const TransferOperation& operation) const {
  return memory_ && memory_->reaches_all() && peer.here && operation.transfer.envelope.bytes() >= least_read_;
}

// Bytes that cannot be read go through slots. A sender whose wait fails may overwrite bytes that are being read, but raises the
// failure first; so the reader looks for a failure before it trusts the bytes.
void TransferLane::read_lent(Peer& peer) {
  for (int pieces = 0; pieces < kSlicesPerTurn && peer.reading.front() != nullptr; ++pieces) {
    TransferOperation* operation = peer.reading.front();
    if (!is_moved(*operation)) {
      const size_t done = operation->moved, bytes = std::min(kPiece, operation->transfer.envelope.bytes() - done);
      const bool is_read = memory_->read(*peer.here, static_cast<std::byte*>(operation->transfer.target) + done,
                                         static_cast<const std::byte*>(operation->lent) + done, bytes);
      if (has_failed()) return;
      operation->moved = is_read ? done + bytes : 0;
      step(*operation);
      if (!is_read) {
        peer.reading.pop();
        peer.granting.push(*operation);
      }
    }
    if (!is_moved(*operation)) continue;
    if (!peer.pair->can_post()) return;
    peer.reading.pop();
    peer.pair->post({.kind = Notice::kRead, .transfer = operation->number}, nullptr);
    finish(*operation);
  }
}

void TransferLane::grant(Peer& peer) {
  TransferPair& pair = *peer.pair;
  while (TransferOperation* operation = peer.granting.front()) {
    if (!pair.can_post()) return;
    peer.granting.pop();
    pair.post({.kind = Notice::kGrant, .transfer = operation->number}, nullptr);
    peer.receiving.push(*operation);
    step(*operation);
  }
}

void TransferLane::send_slices(Peer& peer) {
  for (int slices = 0; slices < kSlicesPerTurn && peer.sending.front() != nullptr;) {
    TransferOperation& operation = *peer.sending.front();
    const size_t left = operation.transfer.envelope.bytes() - operation.moved;
    const std::byte* const source = static_cast<const std::byte*>(operation.transfer.source) + operation.moved;
    slices += advance(operation, peer.pair->send(source, left, kSlicesPerTurn - slices, put));
    if (!is_moved(operation)) return;
    peer.sending.pop();
    finish(operation);
  }
}

void TransferLane::receive_slices(Peer& peer) {
  for (int slices = 0; slices < kSlicesPerTurn && peer.receiving.front() != nullptr;) {
    TransferOperation& operation = *peer.receiving.front();
    const size_t whole = operation.transfer.envelope.bytes(), left = whole - operation.moved;
    std::byte* const target = static_cast<std::byte*>(operation.transfer.target) + operation.moved;
    const CopyBytes copy = whole >= kTuning.streamed ? stream_bytes : copy_bytes;
    slices += advance(operation, peer.pair->receive(target, left, kSlicesPerTurn - slices, copy));
    if (!is_moved(operation)) return;
    peer.receiving.pop();
    finish(operation);
  }
}

// Returns what counts for the turn: an operation without bytes counts as a slice.
int TransferLane::advance(TransferOperation& operation, const TransferPair::Moved& moved) {
  operation.moved += moved.bytes;
  if (moved.slices > 0) step(operation);
  return std::max(moved.slices, 1);
}

void TransferLane::step(TransferOperation& operation) { operation.raise_steps(1); }

void TransferLane::finish(TransferOperation& operation) {
  const TransferEnd& transfer = operation.transfer;
  const bool timed = operation.began != Clock::time_point{};
  const uint64_t nanoseconds = timed ? static_cast<uint64_t>((Clock::now() - operation.began).count()) : 0;
  if (!operation.differs) {
    statistics_.count({.collective = transfer.counted_as(),
                       .path = metrics::kTransferPath,
                       .bytes = transfer.envelope.bytes(),
                       .nanoseconds = nanoseconds});
    if (transfer.told_source != nullptr) *transfer.told_source = operation.other.load(std::memory_order_relaxed);
  }
  drop_interest(operation);
  operation.raise_steps(TransferOperation::kEnd);
}

void TransferLane::drop_interest(const TransferOperation& operation) {
  const int other = operation.other.load(std::memory_order_relaxed);
  --(other < 0 ? any_source_ : peers_[other].interest);
}

void TransferLane::withdraw(TransferOperation& operation) {
  const std::lock_guard turn(mutex_);
  if (operation.has_ended() || issued_.remove(operation)) return;
  bool was_there = posted_.remove(operation);
  for (Peer& peer : peers_) {
    was_there |= peer.offered.remove(operation);
    for (TransferQueue* queue : {&peer.announcing, &peer.sending, &peer.reading, &peer.granting, &peer.receiving})
      was_there |= queue->remove(operation);
  }
  if (was_there) drop_interest(operation);
}

}  // namespace fccl::core
