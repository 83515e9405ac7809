// Which elements a sub-call takes, and where they lie on either side of a copy.
#include "device/sub_calls.h"

#include <algorithm>

#include "base/check.h"

namespace fccl {
namespace {

// Pieces of whole cache lines, so that no later one begins within a line of the one before.
constexpr size_t kLine = 64;

size_t most_elements(const Signature& s, int ranks, size_t buffer_bytes) {
  const Collective& row = s.row();
  const size_t blocks = row.has_pairs() ? row.input_blocks(ranks) + row.output_blocks(ranks) : row.most_blocks(ranks);
  const size_t elements = buffer_bytes / blocks / size_of(s.dtype);
  const size_t line = kLine / size_of(s.dtype);
  return elements < line ? elements : elements / line * line;
}

}  // namespace

SubCalls::SubCalls(const Call& call, int rank, int ranks, size_t buffer_bytes, size_t most_pitch)
    : call_(call),
      row_(&call.signature.row()),
      rank_(rank),
      ranks_(ranks),
      gives_(row_->gives(rank, call.signature.root)),
      takes_(row_->takes(rank, call.signature.root)),
      most_pitch_(most_pitch),
      most_elements_(most_elements(call.signature, ranks, buffer_bytes)) {
  check(most_elements_ > 0, "the buffer holds an element for every rank");
  count_ = std::max<size_t>(1, (call.signature.count + most_elements_ - 1) / most_elements_);
}

size_t SubCalls::elements_of(uint64_t part) const { return std::min(most_elements_, call_.signature.count - first_of(part)); }

// In place, by the rules of fccl.h; what has a block for each pair of ranks does not work in place.
size_t SubCalls::input_offset(size_t block_bytes) const {
  const bool is_one_of_many = row_->input == Extent::one_block && row_->output == Extent::block_per_rank && takes_;
  return is_one_of_many ? static_cast<size_t>(rank_) * block_bytes : 0;
}

size_t SubCalls::output_offset(size_t block_bytes) const {
  if (row_->has_pairs()) return row_->input_blocks(ranks_) * block_bytes;
  const bool is_one_of_many = row_->input == Extent::block_per_rank && row_->output == Extent::one_block && gives_;
  return is_one_of_many ? static_cast<size_t>(rank_) * block_bytes : 0;
}

Call SubCalls::sub_call(uint64_t part, std::byte* buffer) const {
  Call sub = call_;
  Signature& signature = sub.signature;
  signature.count = elements_of(part);
  signature.elsewhere = call_.signature.count - signature.count;
  signature.part = static_cast<uint32_t>(part);
  sub.send = gives_ ? buffer + input_offset(signature.bytes()) : nullptr;
  sub.recv = takes_ ? buffer + output_offset(signature.bytes()) : nullptr;
  return sub;
}

// Blocks that lie side by side on both sides are one row.
Copies SubCalls::rows(const Copy& row, size_t blocks) const {
  if (row.bytes == 0) return {};
  const bool side_by_side = row.to_pitch == row.bytes && row.from_pitch == row.bytes;
  Copy all{row.to, row.from, row.bytes};
  if (side_by_side || blocks == 1) {
    all.bytes *= blocks;
    return {all, 1};
  }
  if (std::max(row.to_pitch, row.from_pitch) > most_pitch_) return {all, blocks, row.to_pitch, row.from_pitch};
  all.rows = blocks;
  all.to_pitch = row.to_pitch;
  all.from_pitch = row.from_pitch;
  return {all, 1};
}

Copies SubCalls::in(uint64_t part, std::byte* buffer) const {
  if (!gives_) return {};
  const size_t element = size_of(call_.signature.dtype), block = elements_of(part) * element;
  const auto* from = static_cast<const std::byte*>(call_.send) + first_of(part) * element;
  return rows({.to = buffer + input_offset(block),
               .from = from,
               .bytes = block,
               .to_pitch = block,
               .from_pitch = call_.signature.bytes()},
              row_->input_blocks(ranks_));
}

Copies SubCalls::out(uint64_t part, std::byte* buffer) const {
  if (!takes_) return {};
  const size_t element = size_of(call_.signature.dtype), block = elements_of(part) * element;
  auto* to = static_cast<std::byte*>(call_.recv) + first_of(part) * element;
  return rows({.to = to,
               .from = buffer + output_offset(block),
               .bytes = block,
               .to_pitch = call_.signature.bytes(),
               .from_pitch = block},
              row_->output_blocks(ranks_));
}

}  // namespace fccl
