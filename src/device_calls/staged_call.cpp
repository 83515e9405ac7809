// Lays out the blocks of a staged call on the host, and lists the runs of bytes that go there and back.
#include "device_calls/staged_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "base/rounding.h"
#include "os/memory.h"

namespace fccl::core {
namespace {

constexpr size_t kLine = 64;
// Smaller calls do not ask how much memory there is.
constexpr size_t kSmall = size_t{64} << 20;

using Pieces = std::vector<StagedCall::Piece>;

size_t whole_lines(size_t bytes) { return rounded_up<size_t>(bytes, kLine); }

void add(Pieces& pieces, const StagedCall::Piece& piece) {
  if (piece.bytes > 0) pieces.push_back(piece);
}

// Packs the blocks of a buffer one after another from `host` on: appends their pieces and, for blocks with counts of their own,
// their layout there.
void pack(const Layout& layout, int blocks, const StagedCall::Piece& buffer, Pieces& pieces, UnevenBuffer& packed) {
  std::vector<ByteRange> ranges;
  size_t end = 0;
  for (int block = 0; block < blocks; ++block) {
    const size_t bytes = layout.bytes(block);
    add(pieces, {buffer.host + end, buffer.device + layout.offset(block), bytes});
    ranges.push_back({bytes > 0 ? end : 0, bytes});
    end += bytes;
  }
  packed.set(ranges);
}

}  // namespace

void StagedCall::Freed::operator()(std::byte* memory) const { ::operator delete(memory, std::align_val_t{kLine}); }

StagedCall::StagedCall(const CallOrTransfer& operation, const OnDevice& on_device, std::atomic<bool>& in_call)
    : inside_(in_call), on_host_(operation), stream_(on_device.stream) {}

Result<std::unique_ptr<StagedCall>> StagedCall::make(const CallOrTransfer& operation, const OnDevice& on_device, int rank,
                                                     int ranks, std::atomic<bool>& in_call) {
  std::unique_ptr<StagedCall> staged(new StagedCall(operation, on_device, in_call));
  auto* const call = std::get_if<Call>(&staged->on_host_);
  FCCL_TRY(call != nullptr ? staged->stage(*call, on_device.scalar, rank, ranks)
                           : staged->stage(std::get<TransferEnd>(staged->on_host_)));
  return staged;
}

Result<void> StagedCall::reserve(size_t bytes) {
  const auto failure = [&](const std::string& observed) {
    return fail(fcclSystemError,
                fmt::format("staging {} in {} bytes of host memory failed: {}; free memory, raise the container's memory "
                            "limit, or give fewer elements at once",
                            fccl::core::describe(on_host_), bytes, observed));
  };
  if (bytes > kSmall)
    if (const AvailableMemory available = available_memory(); bytes > available.bytes)
      return failure(fmt::format("only {} bytes are available, as {} says", available.bytes, available.limited_by));
  memory_.reset(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{kLine}, std::nothrow)));
  if (!memory_) return failure("the allocator has none");
  return {};
}

Result<void> StagedCall::stage(Call& call, const void* scalar, int rank, int ranks) {
  const Signature& s = call.signature;
  const Collective& row = s.row();
  const bool gives = row.gives(rank, s.root), takes = row.takes(rank, s.root);
  const Layout input = call.input(ranks), output = call.output(ranks);
  // Exceeds any machine's memory, and the sum of two does not overflow.
  constexpr size_t kMost = SIZE_MAX / 4;
  const size_t sent = gives ? whole_lines(std::min(input.total(), kMost)) : 0,
               received = takes ? std::min(output.total(), kMost) : 0;
  FCCL_TRY(reserve(sent + received + 1));
  const Piece from{memory_.get(), static_cast<std::byte*>(const_cast<void*>(call.send)), gives ? input.total() : 0};
  const Piece to{memory_.get() + sent, static_cast<std::byte*>(call.recv), received};
  if (call.uneven == nullptr) {
    add(in_, from);
    add(out_, to);
  } else {
    blocks_ = *call.uneven;
    if (row.input == Extent::block_per_rank)
      pack(input, ranks, from, in_, blocks_.input);
    else
      add(in_, from);
    if (row.output == Extent::block_per_rank)
      pack(output, ranks, to, out_, blocks_.output);
    else
      add(out_, to);
    call.uneven = &blocks_;
  }
  auto* const factor = static_cast<std::byte*>(const_cast<void*>(scalar));
  if (scalar != nullptr) add(in_, {reinterpret_cast<std::byte*>(&call.scalar.bits), factor, size_of(s.dtype)});
  call.send = gives ? from.host : nullptr;
  call.recv = takes ? to.host : nullptr;
  return {};
}

Result<void> StagedCall::stage(TransferEnd& transfer) {
  const size_t bytes = transfer.envelope.bytes();
  FCCL_TRY(reserve(bytes + 1));
  if (transfer.direction == Direction::send) {
    add(in_, {memory_.get(), static_cast<std::byte*>(const_cast<void*>(transfer.source)), bytes});
    transfer.source = memory_.get();
  } else {
    add(out_, {memory_.get(), static_cast<std::byte*>(transfer.target), bytes});
    transfer.target = memory_.get();
  }
  return {};
}

std::string describe(const CallOrTransfer& operation) {
  const auto* const call = std::get_if<Call>(&operation);
  return call != nullptr ? describe(call->signature) : describe(std::get<TransferEnd>(operation));
}

}  // namespace fccl::core
