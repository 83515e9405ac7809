// Endpoint checks every call against the contract, and hands operations to its rails.
#include "transports/endpoint.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace fccl::core::simulated {

namespace {

// An address on the wire of a Fabric.
struct Address {
  uint64_t fabric;
  uint64_t endpoint;
  uint64_t rail;
};

uint64_t address_of(const FabricState& fabric) { return reinterpret_cast<uintptr_t>(&fabric); }

}  // namespace

Endpoint::Endpoint(std::shared_ptr<FabricState> fabric) : fabric_(std::move(fabric)) {
  std::vector<std::shared_ptr<Inbox>> inboxes;
  for (int rail = 0; rail < limits().rails; ++rail) inboxes.push_back(std::make_shared<Inbox>());
  number_ = fabric_->add_endpoint(inboxes);
  for (auto& inbox : inboxes) {
    const uint64_t stream = number_ * inboxes.size() + rails_.size();
    rails_.push_back(std::make_unique<Rail>(*fabric_, std::move(inbox), fabric_->options.seed + 0x9e3779b97f4a7c15 * stream));
  }
}

Endpoint::~Endpoint() {
  for (auto& rail : rails_) rail->inbox().loss = Loss::reported;
  for (auto& [memory, region] : regions_) FabricState::release(*region);
}

std::string Endpoint::description() const {
  return fmt::format("endpoint {} of a simulated fabric with seed {}", number_, fabric_->options.seed);
}

std::vector<std::byte> Endpoint::address(int rail) const {
  const Address address{address_of(*fabric_), number_, static_cast<uint64_t>(rail)};
  std::vector<std::byte> bytes(sizeof(address));
  std::memcpy(bytes.data(), &address, sizeof(address));
  return bytes;
}

Result<PeerId> Endpoint::connect(int rail, std::span<const std::byte> bytes) {
  FCCL_TRY(check_rail(rail));
  Address address{};
  if (bytes.size() == sizeof(address)) std::memcpy(&address, bytes.data(), sizeof(address));
  auto target = address.fabric == address_of(*fabric_) ? fabric_->inbox(address.endpoint, address.rail) : nullptr;
  if (target == nullptr) {
    return fail(fcclInvalidArgument, fmt::format("{} bytes are not an address of this fabric", bytes.size()));
  }
  if (rails_[static_cast<size_t>(rail)]->refuses_connect()) {
    ++fabric_->counts.refused_connects;
    return fail(fcclSystemError, fmt::format("the fabric refuses to connect to endpoint {}", address.endpoint));
  }
  auto link = std::make_unique<Link>();
  link->number = fabric_->next_link();
  link->rail = rail;
  link->target_endpoint = address.endpoint;
  link->target_rail = address.rail;
  link->target = std::move(target);
  rails_[static_cast<size_t>(rail)]->add(*link);
  links_.push_back(std::move(link));
  return PeerId{static_cast<uint32_t>(links_.size() - 1)};
}

Result<MemoryId> Endpoint::register_memory(std::span<std::byte> memory, PeersMay peers_may) {
  if (memory.empty()) return fabric_->misuse("memory of no bytes cannot be registered");
  auto region = fabric_->add_region(number_, memory, peers_may);
  const MemoryId id{static_cast<uint32_t>(region->number)};
  regions_.emplace(id, std::move(region));
  return id;
}

void Endpoint::release_memory(MemoryId memory) {
  const auto at = regions_.find(memory);
  if (at == regions_.end()) {
    fabric_->misuse(fmt::format("memory {} is released, but not registered", static_cast<uint32_t>(memory)));
    return;
  }
  const int users = at->second->in_use;
  if (users > 0) {
    fabric_->misuse(fmt::format("memory {} is released, but {} operations use it", static_cast<uint32_t>(memory), users));
  }
  FabricState::release(*at->second);
  regions_.erase(at);
}

RemoteMemory Endpoint::remote(MemoryId memory, int rail) const {
  const Region& region = *regions_.at(memory);
  return {region.address(), region.key(rail)};
}

Result<void> Endpoint::reserve_messages(int more) {
  if (more < 0) return fabric_->misuse(fmt::format("room for {} messages", more));
  for (auto& rail : rails_) rail->inbox().make_room(more);
  return {};
}

Result<size_t> Endpoint::post(int rail, std::span<const Operation> operations) {
  FCCL_TRY(check_rail(rail));
  size_t posted = 0;
  for (const Operation& operation : operations) {
    if (auto good = check(rail, operation); !good) {
      if (posted == 0) return fail(std::move(good).error());
      break;
    }
    Link& link = *links_[static_cast<size_t>(operation.peer)];
    Rail& on = *rails_[static_cast<size_t>(rail)];
    if (on.full_for(link)) break;
    std::shared_ptr<Region> local;
    if (operation.bytes > 0) {
      local = regions_.at(operation.memory);
      ++local->in_use;
    }
    tags_.insert(operation.tag);
    on.launch(operation, link, std::move(local));
    ++posted;
  }
  return posted;
}

Result<size_t> Endpoint::poll(int rail, std::span<Completion> found) {
  FCCL_TRY(check_rail(rail));
  Rail::Found finds{.room = found, .completions = 0, .ended = {}};
  rails_[static_cast<size_t>(rail)]->poll(finds);
  for (auto& flight : finds.ended) {
    tags_.erase(flight->operation.tag);
    if (flight->local) --flight->local->in_use;
    if (!flight->result) errors_[flight->operation.tag] = std::move(flight->result).error();
  }
  return finds.completions;
}

Error Endpoint::error_of(uint64_t tag) {
  auto node = errors_.extract(tag);
  if (!node.empty()) return std::move(node.mapped());
  return fabric_->misuse(fmt::format("tag {} has no error, or it has been taken", tag)).value();
}

Result<void> Endpoint::check_rail(int rail) const {
  if (rail >= 0 && rail < limits().rails) return {};
  return fabric_->misuse(fmt::format("rail {} of {}", rail, limits().rails));
}

Result<void> Endpoint::check(int rail, const Operation& operation) const {
  const auto peer = static_cast<size_t>(operation.peer);
  if (peer >= links_.size() || links_[peer]->rail != rail) {
    return fabric_->misuse(fmt::format("operation {} names peer {}, which rail {} does not have", operation.tag, peer, rail));
  }
  if (tags_.contains(operation.tag)) {
    return fabric_->misuse(fmt::format("tag {} is that of an operation whose end has not been polled", operation.tag));
  }
  FCCL_TRY(check_size(operation));
  return check_local(operation);
}

Result<void> Endpoint::check_size(const Operation& operation) const {
  const bool message = operation.kind == Operation::Kind::message;
  const size_t most = message ? limits().message_bytes : limits().write_bytes;
  const size_t least = operation.kind == Operation::Kind::write ? 0 : 1;
  if (operation.bytes >= least && operation.bytes <= most) return {};
  return fabric_->misuse(
      fmt::format("operation {} has {} bytes, but may have {} to {}", operation.tag, operation.bytes, least, most));
}

Result<void> Endpoint::check_local(const Operation& operation) const {
  if (operation.bytes == 0) return {};
  const auto at = regions_.find(operation.memory);
  if (at != regions_.end()) {
    const std::span<std::byte> bytes = at->second->bytes;
    const uint64_t offset = reinterpret_cast<uintptr_t>(operation.local) - reinterpret_cast<uintptr_t>(bytes.data());
    if (offset <= bytes.size() && operation.bytes <= bytes.size() - offset) return {};
  }
  return fabric_->misuse(
      fmt::format("the bytes of operation {} do not lie in memory {}", operation.tag, static_cast<uint32_t>(operation.memory)));
}

}  // namespace fccl::core::simulated
