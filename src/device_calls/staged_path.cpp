// Copies the input and the results of staged calls through a lane of their own, on the caller's thread.
#include "device_calls/staged_path.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>
#include <vector>

#include "creation/init_calls.h"
#include "health/control.h"
#include "operations/communicator_state.h"
#include "settings/settings.h"

namespace fccl::core {
namespace {

// Size of the buffer that all these bytes go through; every communicator pins one, whether or not it has such calls.
constexpr size_t kStagingBytes = size_t{256} << 10;
// Entries that are reserved for the join, or for the user's mark in its place.
constexpr size_t kEntriesOfJoin = 3;

}  // namespace

StagedPath::StagedPath(OwnDevice& gpu, const Settings& settings, CommunicatorState& state)
    : gpu_(gpu),
      state_(state),
      shape_{.buffer_bytes = std::min(settings.cuda_buffer_bytes, kStagingBytes),
             .buffers = 1,
             .queue_entries = std::min(settings.cuda_queue_entries, gpu.device()->limits().queue_entries)} {}

// A send involves two ranks but set-up needs all of them, so the creation does it.
Result<void> StagedPath::set_up(Deadline deadline) {
  const Device::Use use(*gpu_.device());
  if (!use.entered()) return fail(gpu_.raise("the creation of the communicator", use.entered().error()));
  auto made = DeviceLane::make(gpu_.device(), shape_);
  if (!made) return fail(gpu_.raise("the creation of the communicator", made.error()));
  lane_.device = std::move(*made);
  return InitCalls(state_, deadline).barrier();
}

Result<void> StagedPath::check(const CallOrTransfer& operation, const OnDevice& on_device) {
  const Device::Use use(*gpu_.device());
  if (!use.entered()) return fail(gpu_.raise(describe(operation), use.entered().error()));
  FCCL_TRY(gpu_.check_stream(describe(operation), on_device.stream));
  if (const auto* const call = std::get_if<Call>(&operation)) {
    FCCL_TRY(gpu_.check_buffers(*call));
    return {};
  }
  const TransferEnd& transfer = std::get<TransferEnd>(operation);
  if (transfer.envelope.count == 0) return {};
  FCCL_TRY(transfer.direction == Direction::send ? gpu_.check_place("sendbuff", transfer.source)
                                                 : gpu_.check_place("recvbuff", transfer.target));
  return {};
}

Result<void> StagedPath::bring_in(const StagedCall& call) {
  const Device::Use use(*gpu_.device());
  if (!use.entered()) return fail(gpu_.raise(describe(call.on_host()), use.entered().error()));
  if (std::holds_alternative<Call>(call.on_host())) state_.control->calls.say_issued(state_.number);
  lane_.gpu_arrived = false;
  if (const auto room = make_room(call); !room) return fail(gpu_.raise(describe(call.on_host()), room.error()));
  Result<void> result = gpu_.fork(*lane_.device, {call.stream()});
  if (result) result = copy_in(call);
  if (result) return result;
  return gpu_.conclude(describe(call.on_host()), std::move(result), gpu_.join(*lane_.device, {call.stream()}));
}

Result<void> StagedPath::take_out(const StagedCall& call, bool has_result) {
  const Device::Use use(*gpu_.device());
  if (!use.entered()) return fail(gpu_.raise(describe(call.on_host()), use.entered().error()));
  Result<void> result = has_result ? copy_out(call) : Result<void>{};
  if (has_result && result) count_copied(call);
  if (result) result = make_room(call);
  return gpu_.conclude(describe(call.on_host()), std::move(result), gpu_.join(*lane_.device, {call.stream()}));
}

// Copies as many pieces at a time as the buffer holds. Ends in host memory need no buffer (HostEnds).
Result<void> StagedPath::copy_in(const StagedCall& call) {
  DeviceLane& lane = *lane_.device;
  std::byte* const buffer = lane.memory().buffer(0);
  size_t used = 0;
  std::vector<StagedCall::Piece> under_way;
  const auto land = [&]() -> Result<void> {
    FCCL_TRY(await_copies(call));
    for (const StagedCall::Piece& piece : under_way) std::memcpy(piece.host, piece.device, piece.bytes);
    under_way.clear();
    used = 0;
    return {};
  };
  for (StagedCall::Piece piece : call.in()) {
    if (gpu_.is_on_host(piece.device)) {
      under_way.push_back(piece);
      continue;
    }
    while (piece.bytes > 0) {
      if (used == shape_.buffer_bytes || !lane.has_room(1 + kEntriesOfJoin)) FCCL_TRY(land());
      const size_t bytes = std::min(piece.bytes, shape_.buffer_bytes - used);
      FCCL_TRY(lane.copy({lane.memory().device_address(buffer + used), piece.device, bytes}));
      under_way.push_back({piece.host, buffer + used, bytes});
      used += bytes;
      piece = {piece.host + bytes, piece.device + bytes, piece.bytes - bytes};
    }
  }
  FCCL_TRY(land());
  lane_.gpu_arrived = true;
  return {};
}

// The queue may still hold the copies of the call before.
Result<void> StagedPath::copy_out(const StagedCall& call) {
  DeviceLane& lane = *lane_.device;
  std::byte* const buffer = lane.memory().buffer(0);
  size_t used = shape_.buffer_bytes;
  for (StagedCall::Piece piece : call.out()) {
    if (gpu_.is_on_host(piece.device)) {
      std::memcpy(piece.device, piece.host, piece.bytes);
      continue;
    }
    while (piece.bytes > 0) {
      if (used == shape_.buffer_bytes || !lane.has_room(1 + kEntriesOfJoin)) {
        FCCL_TRY(await_copies(call));
        used = 0;
      }
      const size_t bytes = std::min(piece.bytes, shape_.buffer_bytes - used);
      std::memcpy(buffer + used, piece.host, bytes);
      FCCL_TRY(lane.copy({piece.device, lane.memory().device_address(buffer + used), bytes}));
      used += bytes;
      piece = {piece.host + bytes, piece.device + bytes, piece.bytes - bytes};
    }
  }
  return {};
}

// Each byte of a transfer is read here, and by the transfer itself; collectives are counted where they run.
void StagedPath::count_copied(const StagedCall& call) {
  const auto* const transfer = std::get_if<TransferEnd>(&call.on_host());
  if (transfer == nullptr) return;
  const size_t bytes = transfer->envelope.bytes();
  state_.statistics.count_copied(
      {.collective = transfer->counted_as(), .path = metrics::kTransferPath, .bytes = bytes, .read = 2 * bytes});
}

Result<void> StagedPath::make_room(const StagedCall& call) {
  return lane_.device->has_room(1 + kEntriesOfJoin) ? Result<void>{} : await_copies(call);
}

Result<void> StagedPath::await_copies(const StagedCall& call) {
  return gpu_.await_idle(*lane_.device, [&] { return "to come to " + describe(call.on_host()); });
}

}  // namespace fccl::core
