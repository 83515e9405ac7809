// A plug-in that offers what the request's provider names: something odd.
#include <limits>
#include <map>

#include "wire/transport.h"

namespace fccl::core {
namespace {

constexpr CostConstants kGood{.latency = 1e-5, .message = 1e-6, .wire_byte = 1e-9, .added_byte = 1e-10, .host_byte = 1e-10};

// A transport of two rails that does nothing, or of a window of none.
class Idle final : public Transport {
 public:
  explicit Idle(const TransportLimits& limits) : limits_(limits) {}
  const TransportLimits& limits() const override { return limits_; }
  std::string description() const override { return "an idle transport"; }
  std::vector<std::byte> address(int) const override { return std::vector<std::byte>(1); }
  Result<PeerId> connect(int, std::span<const std::byte>) override { return PeerId{}; }
  Result<MemoryId> register_memory(std::span<std::byte>, PeersMay) override { return MemoryId{}; }
  void release_memory(MemoryId) override {}
  RemoteMemory remote(MemoryId, int) const override { return {}; }
  Result<void> reserve_messages(int) override { return {}; }
  Result<size_t> post(int, std::span<const Operation>) override { return 0; }
  Result<size_t> poll(int, std::span<Completion>) override { return 0; }
  Error error_of(uint64_t) override { return {}; }

 private:
  TransportLimits limits_;
};

Result<std::unique_ptr<Transport>> open(const TransportRequest& request) {
  if (request.provider == "nothing") return std::unique_ptr<Transport>();
  const int outstanding = request.provider == "no-window" ? 0 : 8;
  return std::make_unique<Idle>(TransportLimits{.rails = 2, .write_bytes = 1, .message_bytes = 64, .outstanding = outstanding});
}

Result<OfferedNics> list_nics(const NicsRequest& request) {
  OfferedNics offered{.provider = request.provider, .nics = {{"a", 0, {}}, {"b", 0, {}}}, .costs = kGood};
  if (request.provider == "same-names") offered.nics[1].name = "a";
  if (request.provider == "no-name") offered.nics[1].name = "";
  if (request.provider == "no-nics") offered.nics.clear();
  if (request.provider == "no-costs") offered.costs = {};
  if (request.provider == "no-latency") offered.costs.latency = 0;
  if (request.provider == "negative") offered.costs.message = -1e-6;
  if (request.provider == "nan") offered.costs.wire_byte = std::numeric_limits<double>::quiet_NaN();
  if (request.provider == "bad-name") offered.provider = "My Net";
  if (request.provider == "another") offered.provider = "my-net";
  return offered;
}

}  // namespace
}  // namespace fccl::core

const fccl::core::TransportPlugin fccl_transport_plugin{FCCL_CONTRACT, fccl::core::open, fccl::core::list_nics};
