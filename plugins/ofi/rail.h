// Rail: the operations, messages and completions of one NIC.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ofi/address.h"
#include "ofi/contacts.h"
#include "ofi/endpoint.h"
#include "ofi/gate.h"
#include "ofi/reachability.h"
#include "ofi/receives.h"
#include "ofi/regions.h"
#include "ofi/slots.h"
#include "wire/transport.h"

namespace fccl::core::ofi {

// A transport owns it; one thread at a time uses it. Operations that libfabric does not take at once wait here in a queue per
// peer, since a peer that is gone or not connected yet must not hold up the others. After an error of post or poll the rail may
// only be destroyed.
class Rail {
 public:
  static Result<std::unique_ptr<Rail>> open(const Provider& provider, Info info, size_t message_bytes);
  Rail(Endpoint endpoint, size_t message_bytes);
  Rail(const Rail&) = delete;
  Rail& operator=(const Rail&) = delete;
  ~Rail();

  // Returns the limits of this rail alone.
  TransportLimits limits() const;
  const Endpoint& endpoint() const { return endpoint_; }

  Result<std::vector<std::byte>> address() const { return address_of(endpoint_, {mailbox_region_.remote, notice_token_}); }
  Result<PeerId> connect(std::span<const std::byte> address);
  // `memory` is an index that all rails use.
  Result<void> register_memory(MemoryId memory, std::span<std::byte> bytes, PeersMay peers_may);
  void release_memory(MemoryId memory);
  RemoteMemory remote(MemoryId memory) const { return regions_[static_cast<size_t>(memory)].remote; }
  Result<void> reserve_messages(int more);

  Result<size_t> post(std::span<const Operation> operations);
  Result<size_t> poll(std::span<Completion> found);
  uint64_t turned_away() const { return gate_ ? gate_->turned_away() : 0; }
  // Returns why the operation failed, if it belongs to this rail.
  std::optional<Error> take_error(uint64_t tag);

 private:
  using Time = std::chrono::steady_clock::time_point;

  struct Peer {
    fi_addr_t address = FI_ADDR_UNSPEC;
    Destination destination;
    std::string text;
    // Operations that libfabric has not taken, and since when it takes none.
    SlotQueue waiting;
    Time waiting_since;
    std::unique_ptr<Reachability> reachability;
  };

  Result<void> check(const Operation& operation) const;
  Result<void> start(const Operation& operation);
  // Returns libfabric's answer: 0 if it took the operation.
  ssize_t issue(Slot& slot);
  ssize_t issue_empty_write(Slot& slot, const Peer& peer);
  void retry_waiting();
  bool retry(Peer& peer, Time now);
  int why_unreachable(Peer& peer, Time now);
  Result<size_t> read_completions(std::span<Completion> found);
  Result<void> read_failures();
  bool translate(const fi_cq_data_entry& entry, fi_addr_t sender, Completion& completion);
  Completion arrival(const fi_cq_data_entry& entry, fi_addr_t sender) const;
  Completion message(const fi_cq_data_entry& entry, fi_addr_t sender);
  size_t take_failed(std::span<Completion> found);
  void fail_slot(Slot& slot, std::string_view why);
  Error failure_of(const Operation& operation, std::string_view why) const;

  Endpoint endpoint_;
  TransportLimits limits_;
  // By MemoryId; the endpoint is closed before them, and the domain after them.
  std::vector<Region> regions_;
  // Source and target of writes without bytes.
  std::array<std::byte, 8> mailbox_{};
  Region mailbox_region_;
  // Only on a rail over TCP.
  std::optional<Gate> gate_;
  // Peers put this above the immediate of every write, if the provider carries that much.
  uint32_t notice_token_ = 0;
  Receives receives_;
  Slots slots_;
  std::vector<Peer> peers_;
  Contacts contacts_;
  // PeerIds of peers with waiting operations.
  std::vector<uint32_t> held_up_;
  // Failed operations that have not been polled yet.
  SlotQueue failed_;
  std::unordered_map<uint64_t, Error> errors_;
};

}  // namespace fccl::core::ofi
