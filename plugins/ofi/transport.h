// OfiTransport: implements the wire's Transport over libfabric.
#pragma once

#include <memory>
#include <vector>

#include "ofi/nics.h"
#include "ofi/rail.h"
#include "wire/transport.h"

namespace fccl::core::ofi {

// Holds rails side by side: passes each call on to the rail that it concerns.
class OfiTransport : public Transport {
 public:
  static Result<std::unique_ptr<Transport>> open(const TransportRequest& request);
  explicit OfiTransport(std::vector<std::unique_ptr<Rail>> rails);

  const TransportLimits& limits() const override { return limits_; }
  std::string description() const override;
  std::vector<std::byte> address(int rail) const override;
  Result<PeerId> connect(int rail, std::span<const std::byte> address) override;
  Result<MemoryId> register_memory(std::span<std::byte> memory, PeersMay peers_may) override;
  void release_memory(MemoryId memory) override;
  RemoteMemory remote(MemoryId memory, int rail) const override;
  Result<void> reserve_messages(int more) override;
  Result<size_t> post(int rail, std::span<const Operation> operations) override;
  Result<size_t> poll(int rail, std::span<Completion> found) override;
  Error error_of(uint64_t tag) override;
  uint64_t turned_away() const override;

 private:
  Rail& rail(int number) const { return *rails_[static_cast<size_t>(number)]; }

  std::vector<std::unique_ptr<Rail>> rails_;
  TransportLimits limits_;
  std::vector<std::vector<std::byte>> addresses_;
  // Released numbers, to be given again.
  std::vector<MemoryId> free_memories_;
  uint32_t memories_ = 0;
};

}  // namespace fccl::core::ofi
