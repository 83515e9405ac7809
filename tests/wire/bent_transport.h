// BentTransport: another transport that counts, with smaller limits, or with failures that no simulated network has.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "wire/transport.h"

namespace fccl::core::testing {

class BentTransport final : public Transport {
 public:
  explicit BentTransport(std::unique_ptr<Transport> inner) : shown(inner->limits()), inner_(std::move(inner)) {}

  const TransportLimits& limits() const override { return shown; }
  std::string description() const override { return "a bent transport"; }
  std::vector<std::byte> address(int rail) const override { return inner_->address(rail); }
  Result<PeerId> connect(int rail, std::span<const std::byte> address) override { return inner_->connect(rail, address); }
  Result<MemoryId> register_memory(std::span<std::byte> memory, PeersMay peers_may) override {
    if (registers_at_most >= 0 && registered == registers_at_most) return fail(fcclSystemError, "no more memory can be pinned");
    ++registered;
    if (peers_may == PeersMay::write) writable.push_back(memory);
    return inner_->register_memory(memory, peers_may);
  }
  void release_memory(MemoryId memory) override {
    --registered;
    inner_->release_memory(memory);
  }
  RemoteMemory remote(MemoryId memory, int rail) const override { return inner_->remote(memory, rail); }
  Result<void> reserve_messages(int more) override { return inner_->reserve_messages(more); }
  Result<size_t> post(int rail, std::span<const Operation> operations) override {
    if (post_fails != nullptr && *post_fails) return fail(fcclRemoteError, "the peer is not known");
    Result<size_t> taken = inner_->post(rail, operations);
    posted += taken.value_or(0);
    return taken;
  }
  Result<size_t> poll(int rail, std::span<Completion> found) override {
    if (poll_fails != nullptr && *poll_fails) return fail(fcclSystemError, "the card is gone");
    if (sleeps != nullptr && *sleeps) return 0;
    if (invents != nullptr && invents->exchange(false)) {
      found[0] = invention;
      return 1;
    }
    return inner_->poll(rail, found);
  }
  Error error_of(uint64_t tag) override { return inner_->error_of(tag); }

  TransportLimits shown;
  // By a test's thread; none if null.
  const std::atomic<bool>* post_fails = nullptr;
  const std::atomic<bool>* poll_fails = nullptr;
  // While it is true no poll reaches the network, as in a process that is stopped.
  const std::atomic<bool>* sleeps = nullptr;
  // Once where it is true: the next poll finds `invention`.
  std::atomic<bool>* invents = nullptr;
  Completion invention{};
  // Regions of memory; any number if negative.
  int registers_at_most = -1;
  int registered = 0;
  uint64_t posted = 0;                         // operations that the network took
  std::vector<std::span<std::byte>> writable;  // by peers, now or before

 private:
  std::unique_ptr<Transport> inner_;
};

}  // namespace fccl::core::testing
