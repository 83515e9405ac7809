// Runs calls on GPU memory as a whole in host memory: moves their bytes there and back, on the caller's thread.
#include <algorithm>
#include <cstring>

#include "communicator/device_calls.h"
#include "communicator/staged_call.h"
#include "creation/init_calls.h"
#include "creation/parts.h"

namespace fccl::core {
namespace {

// Size of the buffer that all these bytes go through; every communicator pins one, whether or not it has such calls.
constexpr size_t kStagingBytes = size_t{256} << 10;
// Entries that are reserved for the join.
constexpr size_t kEntriesOfJoin = 2;

}  // namespace

// A send involves two ranks but set-up needs all of them, so the creation does it.
Result<void> DeviceCalls::set_up(Deadline deadline) {
  const Device::Use use(*device_);
  if (!use.entered()) return fail(raise("the creation of the communicator", use.entered().error()));
  DeviceLaneShape shape = shape_;
  shape.buffers = 1;
  shape.buffer_bytes = std::min(shape.buffer_bytes, kStagingBytes);
  auto made = DeviceLane::make(device_, shape);
  if (!made) return fail(raise("the creation of the communicator", made.error()));
  lanes_[kStaging].device = std::move(*made);
  staging_bytes_ = shape.buffer_bytes;
  return InitCalls(parts_, deadline).barrier();
}

Result<void> DeviceCalls::check(const CallOrTransfer& operation, const OnDevice& on_device) {
  const Device::Use use(*device_);
  if (!use.entered()) return fail(raise(describe(operation), use.entered().error()));
  FCCL_TRY(check_stream(describe(operation), on_device.stream));
  if (const auto* const call = std::get_if<Call>(&operation)) {
    FCCL_TRY(check_buffers(*call));
    return {};
  }
  const TransferEnd& transfer = std::get<TransferEnd>(operation);
  if (transfer.envelope.count == 0) return {};
  FCCL_TRY(transfer.direction == Direction::send ? check_place("sendbuff", transfer.source)
                                                 : check_place("recvbuff", transfer.target));
  return {};
}

Result<void> DeviceCalls::bring_in(const StagedCall& call) {
  const Device::Use use(*device_);
  if (!use.entered()) return fail(raise(describe(call.on_host()), use.entered().error()));
  if (std::holds_alternative<Call>(call.on_host())) parts_.control->calls.say_issued(parts_.number);
  lanes_[kStaging].gpu_arrived = false;
  if (const auto room = make_room(call); !room) return fail(raise(describe(call.on_host()), room.error()));
  Result<void> result = lanes_[kStaging].device->fork({call.stream()});
  if (result) result = copy_in(call);
  if (result) return result;
  return conclude(describe(call.on_host()), std::move(result), lanes_[kStaging].device->join({call.stream()}));
}

Result<void> DeviceCalls::take_out(const StagedCall& call, bool has_result) {
  const Device::Use use(*device_);
  if (!use.entered()) return fail(raise(describe(call.on_host()), use.entered().error()));
  Result<void> result = has_result ? copy_out(call) : Result<void>{};
  if (result) result = make_room(call);
  return conclude(describe(call.on_host()), std::move(result), lanes_[kStaging].device->join({call.stream()}));
}

// Copies as many pieces at a time as the buffer holds. Ends in host memory need no buffer (HostEnds).
Result<void> DeviceCalls::copy_in(const StagedCall& call) {
  DeviceLane& lane = *lanes_[kStaging].device;
  std::byte* const buffer = lane.buffer(0);
  size_t used = 0;
  std::vector<StagedCall::Piece> under_way;
  const auto land = [&]() -> Result<void> {
    FCCL_TRY(await_staging(call));
    for (const StagedCall::Piece& piece : under_way) std::memcpy(piece.host, piece.device, piece.bytes);
    under_way.clear();
    used = 0;
    return {};
  };
  for (StagedCall::Piece piece : call.in()) {
    if (is_on_host(piece.device)) {
      under_way.push_back(piece);
      continue;
    }
    while (piece.bytes > 0) {
      if (used == staging_bytes_ || !lane.has_room(1 + kEntriesOfJoin)) FCCL_TRY(land());
      const size_t bytes = std::min(piece.bytes, staging_bytes_ - used);
      FCCL_TRY(lane.copy({lane.device_address(buffer + used), piece.device, bytes}));
      under_way.push_back({piece.host, buffer + used, bytes});
      used += bytes;
      piece = {piece.host + bytes, piece.device + bytes, piece.bytes - bytes};
    }
  }
  FCCL_TRY(land());
  lanes_[kStaging].gpu_arrived = true;
  return {};
}

// The queue may still hold the copies of the call before.
Result<void> DeviceCalls::copy_out(const StagedCall& call) {
  DeviceLane& lane = *lanes_[kStaging].device;
  std::byte* const buffer = lane.buffer(0);
  size_t used = staging_bytes_;
  for (StagedCall::Piece piece : call.out()) {
    if (is_on_host(piece.device)) {
      std::memcpy(piece.device, piece.host, piece.bytes);
      continue;
    }
    while (piece.bytes > 0) {
      if (used == staging_bytes_ || !lane.has_room(1 + kEntriesOfJoin)) {
        FCCL_TRY(await_staging(call));
        used = 0;
      }
      const size_t bytes = std::min(piece.bytes, staging_bytes_ - used);
      std::memcpy(buffer + used, piece.host, bytes);
      FCCL_TRY(lane.copy({piece.device, lane.device_address(buffer + used), bytes}));
      used += bytes;
      piece = {piece.host + bytes, piece.device + bytes, piece.bytes - bytes};
    }
  }
  return {};
}

Result<void> DeviceCalls::make_room(const StagedCall& call) {
  return lanes_[kStaging].device->has_room(1 + kEntriesOfJoin) ? Result<void>{} : await_staging(call);
}

Result<void> DeviceCalls::await_staging(const StagedCall& call) {
  return await_idle(*lanes_[kStaging].device, [&] { return "to come to " + describe(call.on_host()); });
}

}  // namespace fccl::core
