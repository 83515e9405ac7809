// Transport: moves bytes between processes of different hosts; what the wire asks of libfabric, or of a stand-in for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "topology/topology.h"

namespace fccl {

// What this end of a transport can do. The same for the transport's whole life.
struct TransportLimits {
  // Endpoints of this process, one per NIC it was given; at least 1.
  int rails = 1;
  // The largest write or read, and the largest message, in bytes.
  size_t write_bytes = 0;
  size_t message_bytes = 0;
  // Operations that a rail holds before it answers "full": posted, and their end not yet polled.
  int outstanding = 0;
  // How many low bits of an immediate arrive; 32 at most.
  int immediate_bits = 32;
  // Whether the NIC writes by itself; else writes are emulated by messages, and pulling by reads is faster (EFA of p4d).
  bool native_writes = true;
  // Whether peers' operations get on only while this process polls.
  bool needs_polling = true;
};

// Memory that NICs may use, as a transport knows it. Valid until release_memory.
enum class MemoryId : uint32_t {};
// What peers may do to registered memory. What they may only write is no source of this process's own operations.
enum class PeersMay : uint8_t { nothing, write, read_and_write };
// The far end of one rail, as a transport knows it. Valid for the transport's life.
enum class PeerId : uint32_t {};

// Where registered memory of another process is, for one of that process's rails. Plain bytes: it travels in messages. The key
// is a secret between that process and its peers: who knows it may do what the memory was registered for.
struct RemoteMemory {
  uint64_t address = 0;
  uint64_t key = 0;
};

// One operation to post. It belongs to the caller; `bytes` at `local`, which lies in `memory`, must stay until its end is
// polled.
struct Operation {
  enum class Kind : uint8_t {
    // Puts bytes at `remote`, which then arrive at the peer as `immediate`. A write of no bytes only brings its immediate, and
    // what it says of memory does not matter.
    write,
    // Puts a message of 1 to message_bytes bytes into a buffer of the peer's transport.
    message,
    // Gets bytes from `remote`; the peer does not learn of it.
    read,
  };
  Kind kind = Kind::write;
  PeerId peer{};
  MemoryId memory{};
  void* local = nullptr;
  size_t bytes = 0;
  RemoteMemory remote;
  uint32_t immediate = 0;
  // The caller's own, and no other outstanding operation's of the transport; comes back with the operation's end.
  uint64_t tag = 0;
};

// What poll found.
struct Completion {
  enum class Kind : uint8_t {
    // An operation of this process ended well: a write's and a message's memory may be used again, a read's bytes are there.
    // What was sent may still be on its way, and while needs_polling it may stay there unless this process polls on.
    ended,
    // All bytes of a peer's write are there.
    arrived,
    // A peer's message.
    message,
    // An operation of this process ended badly; error_of(tag) says why, once.
    failed,
    // Something came from a sender that is no peer, or without the key of the memory it was for. Nothing of it is passed on.
    stranger,
  };
  Kind kind = Kind::ended;
  uint32_t immediate = 0;  // arrived
  uint64_t tag = 0;        // ended, failed
  // message: in the transport's own memory, until the rail is polled again.
  std::span<const std::byte> bytes;
  // stranger: what was known of it, for the log; lives as long as the transport.
  const char* observed = "nothing is known of it";
};

// Created by a plug-in or a test; owned by the wire. One thread at a time, save address() and limits(), and no call waits.
// Processes that use each other connect to each other, before the first operation in either direction: what comes from a sender
// that is no peer is dropped, and reported as `stranger` where it can be told. An `arrived` is always of a write, and of a
// writer who knew the key of memory here. Nothing may be believed of the order of anything: writes, the bytes inside a write,
// messages and completions of one rail pass each other, and only an `arrived` tells that bytes have come. Each `arrived` and
// each message comes once. After a failure of an operation its peer may be lost; the other peers are not. The destructor waits
// for no peer, and what was posted may be lost.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  virtual const TransportLimits& limits() const = 0;
  // For people: provider, version, NICs.
  virtual std::string description() const = 0;
  // How others reach a rail of this process: 1 to kAddressBytes bytes, opaque but for the same kind of transport.
  static constexpr size_t kAddressBytes = 128;
  virtual std::vector<std::byte> address(int rail) const = 0;

  // Makes the process behind `address`, as its address() gave it, a peer of `rail`. Waits for no answer. An address that is not
  // one gives fcclInvalidArgument or, if only the network can know, a failed operation later.
  virtual Result<PeerId> connect(int rail, std::span<const std::byte> address) = 0;

  // Lets the NICs of all rails use `memory`, which the caller keeps until release_memory, and peers who are told its key do
  // what `peers_may` says.
  virtual Result<MemoryId> register_memory(std::span<std::byte> memory, PeersMay peers_may) = 0;
  virtual void release_memory(MemoryId memory) = 0;
  // What a peer that is connected to `rail` needs to reach the begin of `memory`.
  virtual RemoteMemory remote(MemoryId memory, int rail) const = 0;

  // Keeps room for so many more messages to arrive on each rail between two polls. A message for which there is none is delayed
  // by the network, and with it perhaps others, but not lost.
  virtual Result<void> reserve_messages(int more) = 0;

  // Posts a prefix of `operations` and returns its length: fewer than given means that the rail is full for now; poll it, then
  // post the rest. An error is of the first operation not posted.
  virtual Result<size_t> post(int rail, std::span<const Operation> operations) = 0;

  // Lets the rail get on, and writes up to found.size() completions into `found`; returns how many. An error is of the rail as
  // a whole.
  virtual Result<size_t> poll(int rail, std::span<Completion> found) = 0;
  virtual Error error_of(uint64_t tag) = 0;

  // How often somebody tried to connect from where no peer is, and was kept off before anything was sent.
  virtual uint64_t turned_away() const { return 0; }
};

// What a transport is made from.
struct TransportRequest {
  // "efa", "verbs", "tcp", or "" for the best that is there.
  std::string provider;
  // One rail per name, in this order: of a NIC as the provider calls it ("rdmap79s0-rdm", "eth0"), or without what stands
  // behind a "-" there ("rdmap79s0"); none for one rail of the provider's choice.
  std::vector<std::string> nics;
  // The largest message that will be sent.
  size_t message_bytes = 4096 + 64;
};

// Which NICs of this host are asked for.
struct NicsRequest {
  // As in a TransportRequest.
  std::string provider;
  // These alone, named as in a TransportRequest; none for all by which other hosts may be reached.
  std::vector<std::string> names;
};

// The NICs of this host that transports may be opened on: at least one, with different names, as the provider calls them.
// Places and speeds as far as they are known.
struct OfferedNics {
  std::string provider;
  std::vector<Nic> nics;
};

// What a plug-in exports, by the names kTransportSymbol and kNicsSymbol. It is built with libfccl, by the same compiler;
// `build` is compared first, and a plug-in of another build answers with an error.
using OpenTransport = Result<std::unique_ptr<Transport>> (*)(const TransportRequest& request, const char* build);
inline constexpr const char* kTransportSymbol = "fccl_open_transport";
using ListNics = Result<OfferedNics> (*)(const NicsRequest& request, const char* build);
inline constexpr const char* kNicsSymbol = "fccl_list_nics";

}  // namespace fccl
