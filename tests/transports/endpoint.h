// Endpoint: a transport of a Fabric.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "transports/fabric_state.h"
#include "transports/rail.h"

namespace fccl::core::simulated {

// As the contract of Transport says; it also checks its caller, see FabricOptions::abort_on_misuse.
class Endpoint final : public Transport {
 public:
  explicit Endpoint(std::shared_ptr<FabricState> fabric);
  ~Endpoint() override;

  const TransportLimits& limits() const override { return fabric_->options.limits; }
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

 private:
  Result<void> check_rail(int rail) const;
  Result<void> check(int rail, const Operation& operation) const;
  Result<void> check_size(const Operation& operation) const;
  Result<void> check_local(const Operation& operation) const;

  const std::shared_ptr<FabricState> fabric_;
  uint64_t number_ = 0;
  std::vector<std::unique_ptr<Rail>> rails_;
  std::vector<std::unique_ptr<Link>> links_;
  std::map<MemoryId, std::shared_ptr<Region>> regions_;
  // The operations whose end has not been polled.
  std::set<uint64_t> tags_;
  std::map<uint64_t, Error> errors_;
};

}  // namespace fccl::core::simulated
