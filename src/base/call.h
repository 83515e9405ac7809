// Call: one collective as the user asked for it, and the hash by which ranks compare their calls.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/collective.h"
#include "base/dtype.h"
#include "base/layout.h"
#include "base/uneven_blocks.h"
#include "fccl/fccl.h"

namespace fccl {

// Who issues a call: the user, or fcclCommInitRank, fcclCommSplit or fcclCommGrow as a step of theirs, which must not meet a
// user's call.
enum class Issuer : uint8_t { user, init, split, grow };

const char* name_of(Issuer issuer);

// What all ranks must have in common in a call, and all that they must: the hash in a word covers it, and a box's record and an
// entry on the wire show it, each by words_of. What may differ from rank to rank, so counts that do, belongs to Call. `count`
// is the count argument of the C call, in elements; of AllGatherV and ReduceScatterV the sum of their counts.
struct Signature {
  fcclColl_t collective = fcclCollBarrier;
  fcclDataType_t dtype = fcclInt8;
  ReduceOp op = ReduceOp::sum;  // sum where nothing is reduced
  int root = -1;                // -1 where there is none
  size_t count = 0;
  Issuer issuer = Issuer::user;
  // Of a call that runs as several sub-calls: the elements of the others, and which one it is.
  size_t elsewhere = 0;
  uint32_t part = 0;
  uint64_t counts = 0;  // hash_of the counts of AllGatherV and ReduceScatterV
  // Of a reduction of a narrower float: its results are float32, as they were added, and not rounded to dtype.
  bool widens = false;

  const Collective& row() const { return row_of(collective); }
  // Of a block of the input, and of all blocks where each has a count of its own.
  size_t bytes() const { return count * size_of(dtype); }
  // Of the output.
  fcclDataType_t result_type() const { return widens ? fcclFloat32 : dtype; }
  size_t result_bytes() const { return count * size_of(result_type()); }
  // Bytes of an element of the output for each one of the input.
  size_t widening() const { return widens ? size_of(fcclFloat32) / size_of(dtype) : 1; }
};

// A signature as ranks show it to each other and as they hash it; a field that is in no word is not compared. A sub-call shows
// the count of its call, so that calls which differ do so from their first sub-call on.
struct SignatureWords {
  // root (20 bits) | part (12 bits) | collective | type, above it whether it widens | operator | issuer (8 bits each)
  uint64_t kind = 0;
  uint64_t count = 0;
  uint64_t counts = 0;

  bool operator==(const SignatureWords&) const = default;
};

inline constexpr int kPartBits = 12;
inline constexpr uint64_t kWidens = 0x80;  // in the byte of the type

inline SignatureWords words_of(const Signature& s) {
  const uint32_t root_and_part = static_cast<uint32_t>(s.root) << kPartBits | (s.part & ((1U << kPartBits) - 1));
  return {static_cast<uint64_t>(root_and_part) << 32 | static_cast<uint64_t>(s.collective) << 24 |
              (static_cast<uint64_t>(s.dtype) | (s.widens ? kWidens : 0)) << 16 | static_cast<uint64_t>(s.op) << 8 |
              static_cast<uint64_t>(s.issuer),
          s.count + s.elsewhere, s.counts};
}

// Of words that a peer has written, which may be any: a collective, type or issuer that there is not becomes fcclNumColls,
// fcclNumTypes or Issuer::grow.
inline Signature signature_of(const SignatureWords& words) {
  const auto field = [&](int shift) { return static_cast<int>(words.kind >> shift & 0xff); };
  return {.collective = static_cast<fcclColl_t>(std::min<int>(field(24), fcclNumColls)),
          .dtype = static_cast<fcclDataType_t>(std::min<int>(field(16) & ~static_cast<int>(kWidens), fcclNumTypes)),
          .op = static_cast<ReduceOp>(field(8)),
          .root = static_cast<int32_t>(words.kind >> 32) >> kPartBits,
          .count = words.count,
          .issuer = static_cast<Issuer>(std::min<int>(field(0), static_cast<int>(Issuer::grow))),
          .part = static_cast<uint32_t>(words.kind >> 32) & ((1U << kPartBits) - 1),
          .counts = words.counts,
          .widens = (words.kind >> 16 & kWidens) != 0};
}

// Whether they name a collective, a type, an operator and an issuer.
inline bool name_a_call(const SignatureWords& words) {
  const Signature s = signature_of(words);
  return is_known(s.collective) && is_valid(s.dtype) && s.op <= ReduceOp::premul_sum && words_of(s) == words;
}

// One rank's call: the signature, and what is this rank's own.
struct Call {
  Signature signature;
  const void* send = nullptr;
  void* recv = nullptr;
  Scalar scalar = {};                    // this rank's factor of a pre-multiplied sum
  const UnevenBlocks* uneven = nullptr;  // of a collective whose blocks have counts of their own; the issuer's

  // Where the blocks of its buffers lie, among so many ranks.
  Layout input(int ranks) const {
    return uneven != nullptr ? uneven->input.layout() : layout(signature.row().input, signature.bytes(), ranks);
  }
  Layout output(int ranks) const {
    return uneven != nullptr ? uneven->output.layout() : layout(signature.row().output, signature.result_bytes(), ranks);
  }

 private:
  static Layout layout(Extent extent, size_t block, int ranks) {
    return extent == Extent::one_block ? Layout::of_one(block) : Layout::of_many(block, block * static_cast<size_t>(ranks));
  }
};

// The library's own AllGather, of so many bytes of each rank.
inline Call exchange_of(Issuer issuer, const void* mine, void* all, size_t bytes) {
  return {{fcclCollAllGather, fcclUint8, ReduceOp::sum, -1, bytes, issuer}, mine, all};
}

// Two ranks' calls match if they have equal hashes: `number` is the communicator's count of calls, so that a skipped call shows
// even where the next one has equal arguments.
inline uint32_t hash_of(const Signature& s, uint32_t number) {
  const SignatureWords words = words_of(s);
  uint64_t h = (uint64_t{number} << 32) | (words.kind & UINT32_MAX);
  h ^= words.count * 0x9e3779b97f4a7c15ULL ^ words.counts;
  h ^= h >> 29;
  h *= 0xbf58476d1ce4e5b9ULL;
  h += (words.kind >> 32) * 0x94d049bb133111ebULL;
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93ULL;
  return static_cast<uint32_t>(h >> 32);
}

// Of counts that all ranks must have in common, by rank.
uint64_t hash_of(std::span<const size_t> counts);

inline bool is_reduction(fcclColl_t collective) { return is_known(collective) && row_of(collective).reduces; }
inline bool is_rooted(fcclColl_t collective) { return is_known(collective) && row_of(collective).is_rooted(); }
// Whether the larger buffer has a block for each rank, and is not one whole.
inline bool has_rank_blocks(fcclColl_t collective) { return is_known(collective) && row_of(collective).has_rank_blocks(); }
const char* name_of(fcclColl_t collective);
// "AllGather of 1024 float32", "Reduce(sum) of 3 int32 with root 2", "AllReduce(sum) of 5 bfloat16 into float32"; of uneven
// counts the sum, and their hash.
std::string describe(const Signature& signature);

}  // namespace fccl
