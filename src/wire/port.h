// Port: the data that a lane and its endpoint share: queues towards the rails, and counters of arrivals, entries and ends.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "waiting/counter.h"
#include "wire/entry.h"
#include "wire/port_memory.h"
#include "wire/port_shape.h"
#include "wire/post_queue.h"

namespace fccl::core {

// Messages are numbered per sender and receiver through all calls of a lane. The numbers begin a little below their wrap, so
// that every run passes the wrap. An immediate is a channel and the low bits of such a number.
inline constexpr uint64_t kFirstMessage = UINT64_MAX - 5;
inline constexpr int kMessageBits = 8;
inline constexpr int kLargestWindow = 1 << (kMessageBits - 1);
// Limits the writes of one message, so that a queue keeps room for entries and credits: these must always find room.
inline constexpr size_t kMostStripes = 256;

// Hears asides: messages that take no credit, and that may be lost. The thread that has the endpoint's turn calls it, so it
// neither waits nor logs. A peer may have written anything.
class Asides {
 public:
  virtual void hear(int peer, std::span<const std::byte> content) = 0;

 protected:
  ~Asides() = default;
};

// Holds a peer's notice until it is taken.
struct NoticeBox {
  std::atomic<uint64_t> word{0};  // 1 << 32 | its sequence, once it has come
  size_t bytes = 0;
  std::vector<std::byte> content;  // as long as the longest that has come here
};

// Holds a peer's entry. The payload is as the peer sent it.
struct EntryBox {
  std::atomic<uint64_t> word{0};    // sequence (32 bits) | hash
  std::atomic<uint64_t> number{0};  // number of the call, written before `word`
  CallInFull call;
  size_t payload_bytes = 0;
  std::vector<std::byte> payload;
};

// Counters for one peer.
struct PortPeer {
  // Written by the lane.
  std::atomic<uint64_t> sent{kFirstMessage};
  std::atomic<uint64_t> consumed{kFirstMessage};
  // Written by the endpoint.
  std::atomic<uint64_t> granted{kFirstMessage};  // number of sent messages that the peer has consumed
  std::array<EntryBox, 2> boxes;
  std::vector<NoticeBox> notices;  // by sequence, modulo their number
  // Notices to the peer: the lane counts those sent, the endpoint those that the peer reports as taken.
  std::atomic<uint32_t> notices_sent{0};
  std::atomic<uint64_t> notices_heard{0};
  // Notices of the peer, counted by the lane.
  std::atomic<uint32_t> notices_taken{0};
  // Set once, by the endpoint; the error is written before the flag.
  std::atomic<bool> failed{false};
  Error error;
};

// An endpoint owns it. The lane's thread and the thread that has the endpoint's turn share it as the members say. Nothing that
// a peer sent is used before it is checked; an invalid message fails the peer, as a failed operation does. Failures are sticky.
// A peer's failure concerns only waits for that peer: the peer may have done its part and left. A rail's failure concerns every
// wait.
class Port {
 public:
  Port(const PortShape& shape, int rails, uint32_t first_channel);

  const PortShape& shape() const { return shape_; }
  uint32_t first_channel() const { return first_channel_; }

  PortMemory memory;

  // Numbers the operations whose ends are counted: the sends of a stage, an entry, a credit, a notice. An operation's note is
  // the number of its counter.
  int end_of_stage(int number) const { return number; }
  int end_of_entry(int peer, int parity) const { return shape_.stages + peer * 2 + parity; }
  int end_of_credit(int peer) const { return shape_.stages + shape_.peers() * 2 + peer; }
  int end_of_notice(int number) const { return shape_.stages + shape_.peers() * 3 + number; }
  static uint64_t note(int peer, int end) { return static_cast<uint64_t>(peer) << 32 | static_cast<uint32_t>(end); }

  // Called by the lane: posts a message that lies in the memory of outgoing ones.
  void post_message(PeerId to, std::span<std::byte> message, uint64_t note);

  // The lane waits for these.
  std::vector<PostQueue> queues;  // by rail
  std::vector<Counter> ends;
  std::vector<PortPeer> peers;
  std::atomic<uint32_t> sequence;  // the lane's current or last call; written by the lane
  std::atomic<uint64_t>& arrived(int peer, uint64_t message) {
    return arrived_[static_cast<size_t>(peer) * shape_.window + (message & (shape_.window - 1))];
  }
  bool is_broken() const { return broken_.load(std::memory_order_acquire); }
  bool has_failed(int peer) const { return is_broken() || peers[peer].failed.load(std::memory_order_acquire); }
  // Returns the reason once has_failed is true.
  const Error& error_of(int peer) const { return is_broken() ? error_ : peers[peer].error; }

  // The thread that has the endpoint's turn calls the rest.
  void on_arrival(int peer, uint32_t message_bits);
  // Returns false for a message without the token: such a message says nothing about the peer.
  bool on_message(int peer, std::span<const std::byte> bytes);
  void on_end(uint64_t note);
  // A failure is also an end: the memory of the operation may be used again.
  void on_failure(uint64_t note, const Error& error);
  void break_with(Error error);

  // True if all operations have ended, or never will.
  bool is_settled() const;
  // Returns a peer that has not consumed all that it was sent, and still may; -1 if every other one has, or never will.
  int still_taking() const;
  bool is_taken() const { return still_taking() < 0; }

  int in_flight = 0;
  bool closed = false;
  Asides* asides = nullptr;  // set in the turn

 private:
  void on_call(int peer, const EntryMessage& entry, std::span<const std::byte> payload);
  void on_notice(int peer, const EntryMessage& entry, std::span<const std::byte> content);
  void on_grant(int peer, uint64_t consumed);
  void on_notices_taken(int peer, uint64_t packed);
  void distrust(int peer, const std::string& why);
  void fail_peer(int peer, Error error);

  PortShape shape_;
  uint32_t first_channel_;
  std::vector<std::atomic<uint64_t>> arrived_;
  std::atomic<bool> broken_{false};
  Error error_;
};

}  // namespace fccl::core
