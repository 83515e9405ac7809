// Opens the rails, and keeps memory numbers equal on all of them.
#include "ofi/transport.h"

#include <fmt/format.h>

#include <algorithm>

namespace fccl::core::ofi {
namespace {

// Returns the limits that every rail meets.
TransportLimits common_limits(const std::vector<std::unique_ptr<Rail>>& rails) {
  TransportLimits common = rails.front()->limits();
  common.rails = static_cast<int>(rails.size());
  for (const auto& rail : rails) {
    const TransportLimits own = rail->limits();
    common.write_bytes = std::min(common.write_bytes, own.write_bytes);
    common.message_bytes = std::min(common.message_bytes, own.message_bytes);
    common.outstanding = std::min(common.outstanding, own.outstanding);
    common.immediate_bits = std::min(common.immediate_bits, own.immediate_bits);
  }
  return common;
}

}  // namespace

Result<std::unique_ptr<Transport>> OfiTransport::open(const TransportRequest& request) {
  FCCL_TRY_ASSIGN(auto nics, find_nics(request));
  std::vector<std::unique_ptr<Rail>> rails;
  for (Info& info : nics.rails) {
    FCCL_TRY_ASSIGN(auto rail, Rail::open(*nics.provider, std::move(info), request.message_bytes));
    rails.push_back(std::move(rail));
  }
  auto transport = std::make_unique<OfiTransport>(std::move(rails));
  for (const auto& rail : transport->rails_) {
    FCCL_TRY_ASSIGN(auto address, rail->address());
    transport->addresses_.push_back(std::move(address));
  }
  return transport;
}

OfiTransport::OfiTransport(std::vector<std::unique_ptr<Rail>> rails)
    : rails_(std::move(rails)), limits_(common_limits(rails_)) {}

std::string OfiTransport::description() const {
  std::string nics;
  for (const auto& rail : rails_) nics += (nics.empty() ? "" : ", ") + std::string(rail->endpoint().info->domain_attr->name);
  const Endpoint& first = rails_.front()->endpoint();
  return fmt::format("{} (libfabric {}, provider {}) on {}", first.provider->name, installed_version(),
                     first.info->fabric_attr->prov_name, nics);
}

std::vector<std::byte> OfiTransport::address(int rail) const { return addresses_[static_cast<size_t>(rail)]; }

Result<PeerId> OfiTransport::connect(int rail, std::span<const std::byte> address) { return this->rail(rail).connect(address); }

Result<MemoryId> OfiTransport::register_memory(std::span<std::byte> memory, PeersMay peers_may) {
  MemoryId id{memories_};
  if (!free_memories_.empty()) id = free_memories_.back();
  for (const auto& rail : rails_) {
    if (auto registered = rail->register_memory(id, memory, peers_may); !registered) {
      for (const auto& each : rails_) each->release_memory(id);
      return fail(std::move(registered).error());
    }
  }
  if (free_memories_.empty())
    ++memories_;
  else
    free_memories_.pop_back();
  return id;
}

void OfiTransport::release_memory(MemoryId memory) {
  for (const auto& rail : rails_) rail->release_memory(memory);
  free_memories_.push_back(memory);
}

RemoteMemory OfiTransport::remote(MemoryId memory, int rail) const { return this->rail(rail).remote(memory); }

Result<void> OfiTransport::reserve_messages(int more) {
  for (const auto& rail : rails_) FCCL_TRY(rail->reserve_messages(more));
  return {};
}

Result<size_t> OfiTransport::post(int rail, std::span<const Operation> operations) { return this->rail(rail).post(operations); }

Result<size_t> OfiTransport::poll(int rail, std::span<Completion> found) { return this->rail(rail).poll(found); }

Error OfiTransport::error_of(uint64_t tag) {
  for (const auto& rail : rails_) {
    if (auto error = rail->take_error(tag)) return std::move(*error);
  }
  return {fcclInternalError, fmt::format("no operation with the tag {} has failed", tag)};
}

uint64_t OfiTransport::turned_away() const {
  uint64_t all = 0;
  for (const auto& rail : rails_) all += rail->turned_away();
  return all;
}

}  // namespace fccl::core::ofi
