// Posts operations, keeps those that must wait, and translates completions.
#include "ofi/rail.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "os/random.h"

namespace fccl::core::ofi {
namespace {

// More operations would only fill queues: fewer keep a NIC busy.
constexpr size_t kMostOperations = 1024;
// Messages that a completion queue is made for; more may wait in the provider until a poll.
constexpr size_t kMessagesInQueue = 1024;
// Number of completions taken from libfabric at a time.
constexpr size_t kBatch = 32;
// A peer that takes nothing for this long may be gone.
constexpr std::chrono::milliseconds kSuspicionDelay{100};

TransportLimits limits_of(const Endpoint& endpoint, size_t message_bytes) {
  const fi_info& info = *endpoint.info;
  return {.rails = 1,
          .write_bytes = info.ep_attr->max_msg_size,
          .message_bytes = std::min(message_bytes, info.ep_attr->max_msg_size),
          .outstanding = static_cast<int>(std::min(info.tx_attr->size, kMostOperations)),
          .immediate_bits = static_cast<int>(std::min(info.domain_attr->cq_data_size * 8, size_t{32}))};
}

std::string_view verb(Operation::Kind kind) {
  switch (kind) {
    case Operation::Kind::write:
      return "write";
    case Operation::Kind::message:
      return "send a message of";
  }
  return "";
}

uint64_t access_of(PeersMay peers_may) { return peers_may == PeersMay::write ? FI_REMOTE_WRITE : FI_SEND | FI_WRITE; }

// True if a write carries more than an immediate.
bool carries_tokens(const Endpoint& endpoint) { return endpoint.info->domain_attr->cq_data_size >= sizeof(uint64_t); }

// Returns the data that travels with a write: the receiver's token, and the immediate.
uint64_t data_of(const Operation& operation, const Destination& to) {
  return uint64_t{to.notice_token} << 32 | operation.immediate;
}

Completion stranger(const char* observed) { return {.kind = Completion::Kind::stranger, .bytes = {}, .observed = observed}; }

}  // namespace

Result<std::unique_ptr<Rail>> Rail::open(const Provider& provider, Info info, size_t message_bytes) {
  const Room room{.operations = std::min(info->tx_attr->size, kMostOperations), .messages = kMessagesInQueue};
  FCCL_TRY_ASSIGN(auto endpoint, open_endpoint(provider, std::move(info), room));
  auto rail = std::make_unique<Rail>(std::move(endpoint), message_bytes);
  FCCL_TRY_ASSIGN(auto mailbox, open_region(rail->endpoint_, rail->mailbox_, FI_WRITE | FI_REMOTE_WRITE));
  rail->mailbox_region_ = std::move(mailbox);
  if (carries_tokens(rail->endpoint_)) {
    FCCL_TRY_ASSIGN(const auto token, random_bits());
    rail->notice_token_ = static_cast<uint32_t>(token);
  }
  if (provider.of_interfaces) {
    FCCL_TRY_ASSIGN(const auto own, name_of(rail->endpoint_));
    rail->gate_.emplace(own);
  }
  return rail;
}

Rail::Rail(Endpoint endpoint, size_t message_bytes)
    : endpoint_(std::move(endpoint)),
      limits_(limits_of(endpoint_, message_bytes)),
      receives_(limits_.message_bytes),
      slots_(static_cast<size_t>(limits_.outstanding)) {}

Rail::~Rail() {
  // The endpoint must close before the memory that posted receives and operations point to.
  endpoint_.handle.reset();
}

TransportLimits Rail::limits() const { return limits_; }

Result<PeerId> Rail::connect(std::span<const std::byte> address) {
  FCCL_TRY_ASSIGN(auto destination, read_address(endpoint_, address));
  Peer peer;
  peer.destination = std::move(destination);
  if (gate_) gate_->admit(peer.destination.name);
  const void* name = peer.destination.name.data();
  const int inserted = fi_av_insert(endpoint_.addresses.get(), name, 1, &peer.address, 0, nullptr);
  if (inserted != 1)
    return fail(fcclInvalidArgument, fmt::format("cannot connect {}: libfabric does not take the peer's address ({})",
                                                 endpoint_.text(), inserted < 0 ? said(inserted) : "no reason given"));
  std::array<char, 256> text{};
  size_t bytes = text.size();
  fi_av_straddr(endpoint_.addresses.get(), name, text.data(), &bytes);
  text.back() = 0;
  peer.text = text.data();
  peers_.push_back(std::move(peer));
  held_up_.reserve(peers_.size());
  contacts_.add(peers_.back().address, peers_.back().destination.name);
  return static_cast<PeerId>(peers_.size() - 1);
}

Result<void> Rail::register_memory(MemoryId memory, std::span<std::byte> bytes, PeersMay peers_may) {
  FCCL_TRY_ASSIGN(auto region, open_region(endpoint_, bytes, access_of(peers_may)));
  const auto index = static_cast<size_t>(memory);
  if (regions_.size() <= index) regions_.resize(index + 1);
  regions_[index] = std::move(region);
  return {};
}

void Rail::release_memory(MemoryId memory) {
  const auto index = static_cast<size_t>(memory);
  if (index < regions_.size()) regions_[index] = {};
}

Result<void> Rail::reserve_messages(int more) { return receives_.reserve(endpoint_, more); }

Result<void> Rail::check(const Operation& operation) const {
  const auto refuse = [&](const std::string& what) {
    return fail(fcclInvalidArgument,
                fmt::format("cannot {} {} bytes with {}: {}", verb(operation.kind), operation.bytes, endpoint_.text(), what));
  };
  if (static_cast<size_t>(operation.peer) >= peers_.size()) return refuse("there is no such peer");
  if (operation.kind == Operation::Kind::write && operation.bytes == 0) return {};
  if (static_cast<size_t>(operation.memory) >= regions_.size() || !regions_[static_cast<size_t>(operation.memory)].handle)
    return refuse("the memory is not registered");
  if (operation.kind == Operation::Kind::message) {
    if (operation.bytes == 0) return refuse("a message has at least one byte");
    if (operation.bytes > limits_.message_bytes) return refuse(fmt::format("the limit is {}", limits_.message_bytes));
  }
  if (operation.bytes > limits_.write_bytes) return refuse(fmt::format("the limit is {}", limits_.write_bytes));
  return {};
}

Result<size_t> Rail::post(std::span<const Operation> operations) {
  for (size_t posted = 0; posted < operations.size(); ++posted) {
    if (slots_.empty()) return posted;
    if (auto started = start(operations[posted]); !started) {
      if (posted != 0) return posted;
      return fail(std::move(started).error());
    }
  }
  return operations.size();
}

Result<void> Rail::start(const Operation& operation) {
  FCCL_TRY(check(operation));
  Slot& slot = slots_.take(operation);
  Peer& peer = peers_[static_cast<size_t>(operation.peer)];
  const bool in_line = !peer.waiting.empty();
  const ssize_t number = in_line ? -FI_EAGAIN : issue(slot);
  if (number == 0) return {};
  if (number != -FI_EAGAIN) {
    slots_.give_back(slot);
    return fail(failure_of(operation, said(number)));
  }
  if (!in_line) {
    peer.waiting_since = std::chrono::steady_clock::now();
    held_up_.push_back(static_cast<uint32_t>(operation.peer));
  }
  peer.waiting.push(slot);
  return {};
}

ssize_t Rail::issue(Slot& slot) {
  const Operation& operation = slot.operation;
  fid_ep* endpoint = endpoint_.handle.get();
  const Peer& peer = peers_[static_cast<size_t>(operation.peer)];
  const fi_addr_t to = peer.address;
  if (operation.kind == Operation::Kind::write && operation.bytes == 0) return issue_empty_write(slot, peer);
  void* descriptor = regions_[static_cast<size_t>(operation.memory)].descriptor;
  const uint64_t data = data_of(operation, peer.destination);
  switch (operation.kind) {
    case Operation::Kind::write:
      return fi_writedata(endpoint, operation.local, operation.bytes, descriptor, data, to, operation.remote.address,
                          operation.remote.key, &slot.context);
    case Operation::Kind::message:
      return fi_send(endpoint, operation.local, operation.bytes, descriptor, to, &slot.context);
  }
  return -FI_EINVAL;
}

// Writes one byte into the peer's mailbox: some NICs cannot write zero bytes, and the caller may not know any memory.
ssize_t Rail::issue_empty_write(Slot& slot, const Peer& peer) {
  const RemoteMemory& mailbox = peer.destination.mailbox;
  return fi_writedata(endpoint_.handle.get(), mailbox_.data(), 1, mailbox_region_.descriptor,
                      data_of(slot.operation, peer.destination), peer.address, mailbox.address, mailbox.key, &slot.context);
}

void Rail::retry_waiting() {
  const Time now = std::chrono::steady_clock::now();
  std::erase_if(held_up_, [&](uint32_t peer) { return retry(peers_[peer], now); });
}

// Returns true if no operation to the peer waits any more.
bool Rail::retry(Peer& peer, Time now) {
  while (!peer.waiting.empty()) {
    const ssize_t number = issue(peer.waiting.front());
    if (number == -FI_EAGAIN) {
      const int error = why_unreachable(peer, now);
      if (error == 0) return false;
      while (!peer.waiting.empty()) fail_slot(peer.waiting.pop(), std::strerror(error));
      break;
    }
    Slot& slot = peer.waiting.pop();
    peer.waiting_since = now;
    if (number != 0) fail_slot(slot, said(number));
  }
  peer.reachability.reset();
  return true;
}

// Returns 0, or the kernel's error.
int Rail::why_unreachable(Peer& peer, Time now) {
  if (!endpoint_.provider->refuses_silently || now - peer.waiting_since < kSuspicionDelay) return 0;
  if (!peer.reachability) peer.reachability = std::make_unique<Reachability>(peer.destination.name);
  return peer.reachability->error_at(now);
}

Result<size_t> Rail::poll(std::span<Completion> found) {
  FCCL_TRY(receives_.post(endpoint_));
  const size_t failed = take_failed(found);
  auto read = read_completions(found.subspan(failed));
  if (!held_up_.empty()) retry_waiting();
  if (gate_ && contacts_.has_new()) contacts_.close_connections_on_exec(endpoint_);
  // Completions found so far are reported first; an error of the rail will come again.
  if (!read && failed == 0) return fail(std::move(read).error());
  return failed + read.value_or(0);
}

Result<size_t> Rail::read_completions(std::span<Completion> found) {
  std::array<fi_cq_data_entry, kBatch> entries;
  std::array<fi_addr_t, kBatch> senders;
  size_t count = 0;
  while (true) {
    const size_t wanted = std::min(kBatch, found.size() - count);
    const ssize_t number = fi_cq_readfrom(endpoint_.completions.get(), entries.data(), wanted, senders.data());
    if (number == -FI_EAVAIL) {
      FCCL_TRY(read_failures());
      continue;
    }
    if (number < 0 && number != -FI_EAGAIN && count == 0)
      return fail(fcclRemoteError,
                  fmt::format("cannot ask {} for completions: libfabric says \"{}\"", endpoint_.text(), said(number)));
    if (number <= 0) return count;
    for (size_t i = 0; i < static_cast<size_t>(number); ++i)
      if (translate(entries[i], senders[i], found[count])) ++count;
    if (static_cast<size_t>(number) < wanted || count == found.size()) return count;
  }
}

// Returns true if there is something to report.
bool Rail::translate(const fi_cq_data_entry& entry, fi_addr_t sender, Completion& completion) {
  if (Slot* slot = slots_.of(entry.op_context)) {
    contacts_.note(peers_[static_cast<size_t>(slot->operation.peer)].address);
    completion = {.kind = Completion::Kind::ended, .immediate = 0, .tag = slot->operation.tag, .bytes = {}};
    slots_.give_back(*slot);
    return true;
  }
  contacts_.note(sender);
  if ((entry.flags & FI_RECV) != 0) {
    completion = message(entry, sender);
    return true;
  }
  if ((entry.flags & FI_REMOTE_CQ_DATA) == 0) return false;
  completion = arrival(entry, sender);
  return true;
}

// The buffer is given back in any case. No peer sends a message with an immediate, which needs no key.
Completion Rail::message(const fi_cq_data_entry& entry, fi_addr_t sender) {
  const std::span<const std::byte> bytes = receives_.take(entry.op_context, entry.len);
  if (!contacts_.is_peer(sender))
    return stranger(sender == FI_ADDR_NOTAVAIL ? "a message of a sender without an address" : "a message of no peer");
  if ((entry.flags & FI_REMOTE_CQ_DATA) != 0) return stranger("a message of a peer with an immediate, which no peer sends");
  return {.kind = Completion::Kind::message, .bytes = bytes};
}

// Only a write proves that its sender knew a key.
Completion Rail::arrival(const fi_cq_data_entry& entry, fi_addr_t sender) const {
  const bool is_write = (entry.flags & FI_REMOTE_WRITE) != 0;
  const bool is_of_peer = contacts_.is_peer(sender) || !endpoint_.provider->names_writers;
  const bool has_token = entry.data >> 32 == notice_token_;
  if (!is_write) return stranger("an immediate without a write");
  if (!is_of_peer && has_token) return stranger("a write with the right token, whose sender is not known as a peer");
  if (!is_of_peer) return stranger("a write with a wrong token of no peer");
  if (!has_token) return stranger("a write with a wrong token of a peer");
  return {.kind = Completion::Kind::arrived, .immediate = static_cast<uint32_t>(entry.data), .bytes = {}};
}

Result<void> Rail::read_failures() {
  fi_cq_err_entry entry{};
  const ssize_t number = fi_cq_readerr(endpoint_.completions.get(), &entry, 0);
  if (number == -FI_EAGAIN) return {};
  if (number < 0)
    return fail(fcclRemoteError,
                fmt::format("cannot ask {} for failures: libfabric says \"{}\"", endpoint_.text(), said(number)));
  if (Slot* slot = slots_.of(entry.op_context)) {
    std::array<char, 256> text{};
    const char* detail =
        fi_cq_strerror(endpoint_.completions.get(), entry.prov_errno, entry.err_data, text.data(), text.size());
    fail_slot(*slot, fmt::format("{} ({})", said(entry.err), detail != nullptr ? detail : "no more is known"));
  } else if (receives_.owns(entry.op_context)) {
    // The message is lost, and its sender knows that; the buffer is kept.
    receives_.take(entry.op_context, 0);
  }
  // Other errors do not belong to this process's operations: a peer has gone that the other peers do not depend on.
  return {};
}

size_t Rail::take_failed(std::span<Completion> found) {
  size_t count = 0;
  while (count < found.size() && !failed_.empty()) {
    Slot& slot = failed_.pop();
    found[count++] = {.kind = Completion::Kind::failed, .immediate = 0, .tag = slot.operation.tag, .bytes = {}};
    slots_.give_back(slot);
  }
  return count;
}

void Rail::fail_slot(Slot& slot, std::string_view why) {
  errors_.insert_or_assign(slot.operation.tag, failure_of(slot.operation, why));
  failed_.push(slot);
}

Error Rail::failure_of(const Operation& operation, std::string_view why) const {
  const Peer& peer = peers_[static_cast<size_t>(operation.peer)];
  return {fcclRemoteError,
          fmt::format("cannot {} {} bytes to {} over {}: libfabric {} says \"{}\"; if the process there has ended, its own "
                      "output says why; if it has not, see that nothing between the hosts drops what they send",
                      verb(operation.kind), operation.bytes, peer.text, endpoint_.text(), installed_version(), why)};
}

std::optional<Error> Rail::take_error(uint64_t tag) {
  auto node = errors_.extract(tag);
  if (!node) return std::nullopt;
  return std::move(node.mapped());
}

}  // namespace fccl::core::ofi
