// Computes which elements a sub-call takes, and where they lie on both sides of a copy.
#include "device/sub_calls.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/rounding.h"

namespace fccl::core {
namespace {

// Sub-calls take whole cache lines, so that none begins within a line of the one before.
constexpr size_t kLine = 64;

bool works_in_place(const Signature& s) { return !s.row().has_pairs() && !s.widens; }

size_t most_elements(const Signature& s, int ranks, size_t buffer_bytes) {
  const Collective& row = s.row();
  const size_t element = size_of(s.dtype), input = row.input_blocks(ranks) * element;
  const size_t output = row.output_blocks(ranks) * size_of(s.result_type());
  const size_t elements = buffer_bytes / (works_in_place(s) ? row.most_blocks(ranks) * element : input + output);
  const size_t line = kLine / size_of(s.dtype);
  return elements < line ? elements : elements / line * line;
}

}  // namespace

void copy_on_host(const Copies& copies) {
  for (size_t i = 0; i < copies.count; ++i) {
    const Copy copy = copies[i];
    for (size_t row = 0; row < copy.rows; ++row)
      std::memcpy(copy.to + row * copy.to_pitch, copy.from + row * copy.from_pitch, copy.bytes);
  }
}

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
  count_ = std::max<size_t>(1, divided_up(call.signature.count, most_elements_));
}

size_t SubCalls::elements_of(uint64_t part) const { return std::min(most_elements_, call_.signature.count - first_of(part)); }

// Places input and output as fccl.h requires for in-place calls, if the collective works in place. Wider results come first,
// which aligns both.
size_t SubCalls::input_offset(const Signature& part) const {
  if (part.widens) return row_->output_blocks(ranks_) * part.result_bytes();
  const bool is_one_of_many = row_->input == Extent::one_block && row_->output == Extent::block_per_rank && takes_;
  return is_one_of_many ? static_cast<size_t>(rank_) * part.bytes() : 0;
}

size_t SubCalls::output_offset(const Signature& part) const {
  if (part.widens) return 0;
  if (row_->has_pairs()) return row_->input_blocks(ranks_) * part.bytes();
  const bool is_one_of_many = row_->input == Extent::block_per_rank && row_->output == Extent::one_block && gives_;
  return is_one_of_many ? static_cast<size_t>(rank_) * part.bytes() : 0;
}

Signature SubCalls::signature(uint64_t part) const {
  Signature signature = call_.signature;
  signature.count = elements_of(part);
  signature.elsewhere = call_.signature.count - signature.count;
  signature.part = static_cast<uint32_t>(part);
  return signature;
}

Call SubCalls::sub_call(uint64_t part, std::byte* buffer) const {
  Call sub = call_;
  sub.signature = signature(part);
  sub.send = gives_ ? buffer + input_offset(sub.signature) : nullptr;
  sub.recv = takes_ ? buffer + output_offset(sub.signature) : nullptr;
  return sub;
}

// Merges blocks that lie side by side on both ends into one row.
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
  const Signature piece = signature(part);
  const auto* from = static_cast<const std::byte*>(call_.send) + first_of(part) * size_of(piece.dtype);
  return rows({.to = buffer + input_offset(piece),
               .from = from,
               .bytes = piece.bytes(),
               .to_pitch = piece.bytes(),
               .from_pitch = call_.signature.bytes()},
              row_->input_blocks(ranks_));
}

Copies SubCalls::out(uint64_t part, std::byte* buffer) const {
  if (!takes_) return {};
  const Signature piece = signature(part);
  auto* to = static_cast<std::byte*>(call_.recv) + first_of(part) * size_of(piece.result_type());
  return rows({.to = to,
               .from = buffer + output_offset(piece),
               .bytes = piece.result_bytes(),
               .to_pitch = call_.signature.result_bytes(),
               .from_pitch = piece.result_bytes()},
              row_->output_blocks(ranks_));
}

}  // namespace fccl::core
