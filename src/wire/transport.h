// Transport: moves bytes between processes of different hosts. The wire asks libfabric, or a stand-in for it, for these
// operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "topology/cost_constants.h"
#include "topology/nic.h"

namespace fccl::core {

// The limits of this end of a transport. They never change.
struct TransportLimits {
  // Endpoints of this process, one per NIC it was given; at least 1.
  int rails = 1;
  // The largest write, and the largest message, in bytes.
  size_t write_bytes = 0;
  size_t message_bytes = 0;
  // Operations that a rail holds before it answers "full": posted operations whose end has not been polled.
  int outstanding = 0;
  // Number of low bits of an immediate that arrive; 32 at most.
  int immediate_bits = 32;
};

// Registered memory, as a transport numbers it. Valid until release_memory.
enum class MemoryId : uint32_t {};
// Rights of peers on registered memory. Memory that peers may write cannot be the source of this process's own operations.
enum class PeersMay : uint8_t { nothing, write };
// The far end of one rail, as a transport numbers it. Valid for the transport's life.
enum class PeerId : uint32_t {};

// The place of another process's registered memory, for one of that process's rails. It is plain bytes: it travels in messages.
// The key is a secret between that process and its peers: any process that knows it may do what the memory was registered for.
struct RemoteMemory {
  uint64_t address = 0;
  uint64_t key = 0;
};

// One operation to post. It belongs to the caller; `bytes` at `local`, which lies in `memory`, must stay until its end is
// polled.
struct Operation {
  enum class Kind : uint8_t {
    // Puts bytes at `remote`, which then arrive at the peer as `immediate`. A write of no bytes only brings its immediate, and
    // its memory fields are ignored.
    write,
    // Puts a message of 1 to message_bytes bytes into a buffer of the peer's transport.
    message,
  };
  Kind kind = Kind::write;
  PeerId peer{};
  MemoryId memory{};
  void* local = nullptr;
  size_t bytes = 0;
  RemoteMemory remote;
  uint32_t immediate = 0;
  // The caller's own number, unique among the transport's outstanding operations; the operation's end carries it.
  uint64_t tag = 0;
};

// A result of poll.
struct Completion {
  enum class Kind : uint8_t {
    // An operation of this process ended well, and its memory may be used again. The data may still be in flight, and it may
    // stay there unless this process polls on.
    ended,
    // All bytes of a peer's write are there.
    arrived,
    // A peer's message.
    message,
    // An operation of this process ended badly; error_of(tag) says why, once.
    failed,
    // A message came from a sender that is not a peer, or without the key of the memory that it was for. None of it is passed
    // on.
    stranger,
  };
  Kind kind = Kind::ended;
  uint32_t immediate = 0;  // arrived
  uint64_t tag = 0;        // ended, failed
  // message: it lies in the transport's own memory, until the rail is polled again.
  std::span<const std::byte> bytes;
  // stranger: a description of it, for the log; it lives as long as the transport.
  const char* observed = "nothing is known of it";
};

// A plug-in or a test creates it; the wire owns it. One thread at a time may call it, except address() and limits(), and no
// call waits. Processes that use each other connect to each other, before the first operation in either direction: data of a
// sender that is not a peer is dropped, and reported as `stranger` where the transport can tell. An `arrived` always belongs to
// a write, by a writer who knew the key of memory here. No order is guaranteed: writes, the bytes inside a write, messages and
// completions of one rail may overtake each other, and only an `arrived` tells that bytes have come. Each `arrived` and each
// message comes once. After a failure of an operation its peer may be lost; the other peers are not. The destructor waits for
// no peer, and posted operations may be lost.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  virtual const TransportLimits& limits() const = 0;
  // Returns a text for people: provider, version, NICs.
  virtual std::string description() const = 0;
  // Returns the address by which others reach a rail of this process: 1 to kAddressBytes bytes, which only a transport of the
  // same kind can read.
  static constexpr size_t kAddressBytes = 128;
  virtual std::vector<std::byte> address(int rail) const = 0;

  // Makes the process behind `address`, as its address() gave it, a peer of `rail`. It does not wait for an answer. An invalid
  // address gives fcclInvalidArgument or, if only the network can know, a failed operation later.
  virtual Result<PeerId> connect(int rail, std::span<const std::byte> address) = 0;

  // Lets the NICs of all rails use `memory` until release_memory; peers that are told its key may do what `peers_may` says.
  // The caller keeps memory that peers may write until the transport ends: a write that has begun may go on longer.
  virtual Result<MemoryId> register_memory(std::span<std::byte> memory, PeersMay peers_may) = 0;
  virtual void release_memory(MemoryId memory) = 0;
  // Returns what a peer that is connected to `rail` needs to reach the begin of `memory`.
  virtual RemoteMemory remote(MemoryId memory, int rail) const = 0;

  // Adds room for `more` messages that arrive on each rail between two polls. The network delays a message without room, and
  // perhaps others with it, but does not lose it.
  virtual Result<void> reserve_messages(int more) = 0;

  // Posts a prefix of `operations` and returns its length: fewer than given means that the rail is full for now; poll it, then
  // post the rest. An error belongs to the first operation not posted.
  virtual Result<size_t> post(int rail, std::span<const Operation> operations) = 0;

  // Advances the rail, and writes up to found.size() completions into `found`; returns their number. An error concerns the rail
  // as a whole.
  virtual Result<size_t> poll(int rail, std::span<Completion> found) = 0;
  virtual Error error_of(uint64_t tag) = 0;

  // Counts connection attempts from addresses without a peer that were refused before they could send anything.
  virtual uint64_t turned_away() const { return 0; }
};

// The settings of a transport.
struct TransportRequest {
  // A provider as list_nics has offered it, "" for the best one available: "efa", "verbs" and "tcp" of libfabric.
  std::string provider;
  // One rail per name, in this order. A name is a NIC as the provider calls it ("rdmap79s0-rdm", "eth0"), or the part of that
  // before a "-" ("rdmap79s0"); an empty list means one rail of the provider's choice.
  std::vector<std::string> nics;
  // The largest message that will be sent.
  size_t message_bytes = 4096 + 64;
};

// Asks for NICs of this host.
struct NicsRequest {
  // As FCCL_TRANSPORT says it; "" for the best one available.
  std::string provider;
  // Only these, as FCCL_NICS names them; an empty list means all by which other hosts may be reached.
  std::vector<std::string> names;
};

// The NICs of this host that transports may be opened on: at least one, with different names, as the provider calls them.
// Places and speeds are given as far as they are known.
struct OfferedNics {
  // 1 to 31 small letters, digits, "-", "_" or ".". Hosts compare it: equal names mean transports that reach each other.
  std::string provider;
  std::vector<Nic> nics;
  // Measured or assumed; wire_byte is that of the slowest of the NICs. All five are needed.
  CostConstants costs{};
};

using OpenTransport = Result<std::unique_ptr<Transport>> (*)(const TransportRequest& request);
using ListNics = Result<OfferedNics> (*)(const NicsRequest& request);

// A number of this header and of what it includes, and how the C++ library lays out the types in it. A change of the types, or
// of what they mean, is another number.
#define FCCL_TEXT_OF(value) #value
#define FCCL_TEXT(value) FCCL_TEXT_OF(value)
#if defined(_LIBCPP_ABI_VERSION)
#define FCCL_CXX_LIBRARY "libc++ " FCCL_TEXT(_LIBCPP_ABI_VERSION)
#elif defined(_GLIBCXX_DEBUG)
#define FCCL_CXX_LIBRARY "libstdc++ with _GLIBCXX_DEBUG"
#elif _GLIBCXX_USE_CXX11_ABI
#define FCCL_CXX_LIBRARY "libstdc++ with strings of C++11"
#else
#define FCCL_CXX_LIBRARY "libstdc++ with strings of C++98"
#endif
inline constexpr const char* kTransportContract =
    "transport contract 3, " FCCL_CXX_LIBRARY ", tl::expected " FCCL_TEXT(TL_EXPECTED_VERSION_MAJOR);
#undef FCCL_CXX_LIBRARY
#undef FCCL_TEXT
#undef FCCL_TEXT_OF

// What a plug-in exports, by the C name kPluginSymbol. `contract` stays the first field in every version: libfccl compares it
// before it touches the rest. No exception may leave the functions.
struct TransportPlugin {
  const char* contract = nullptr;
  OpenTransport open = nullptr;
  ListNics list_nics = nullptr;
};
inline constexpr const char* kPluginSymbol = "fccl_transport_plugin";

}  // namespace fccl::core

// A plug-in defines it, with kTransportContract as its first field.
// NOLINTNEXTLINE(readability-identifier-naming): the loader looks for a name of C.
extern "C" __attribute__((visibility("default"))) const fccl::core::TransportPlugin fccl_transport_plugin;
