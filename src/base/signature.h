// Signature: what all ranks of a call must agree on, and the hash by which they compare it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/collective.h"
#include "base/dtype.h"
#include "fccl/fccl.h"

namespace fccl::core {

// The issuer of a call. Internal calls of fcclCommInitRank, fcclCommSplit and fcclCommGrow carry their own issuer, so that they
// never match a user's call.
enum class Issuer : uint8_t { user, init, split, grow, first_call };

const char* name_of(Issuer issuer);

// The properties of a call that all ranks must agree on, and no others. Ranks compare them as a hash in the mailbox word, and
// in full in a box's record and in an entry on the wire (see words_of). Values that may differ between ranks, such as the
// counts of AlltoAllV, belong to Call. `count` is the count argument of the C call, in elements; for AllGatherV and
// ReduceScatterV it is the sum of their counts.
struct Signature {
  fcclColl_t collective = fcclCollBarrier;
  fcclDataType_t dtype = fcclInt8;
  ReduceOp op = ReduceOp::sum;  // sum if the collective reduces nothing
  int root = -1;                // -1 if the collective has no root
  size_t count = 0;
  Issuer issuer = Issuer::user;
  // `elsewhere` counts the elements of the call's other sub-calls, `part` numbers this one. Both are 0 for a call that runs
  // whole.
  size_t elsewhere = 0;
  uint32_t part = 0;
  uint64_t counts = 0;  // hash_of the counts of AllGatherV and ReduceScatterV
  // True for a reduction of a narrower float that returns the float32 sums without rounding them to dtype.
  bool widens = false;

  const Collective& row() const { return row_of(collective); }
  // Bytes of one input block; for AllGatherV and ReduceScatterV, of all blocks together.
  size_t bytes() const { return count * size_of(dtype); }
  // The type of the output's elements.
  fcclDataType_t result_type() const { return widens ? fcclFloat32 : dtype; }
  size_t result_bytes() const { return count * size_of(result_type()); }
  // The size of an output element divided by that of an input element.
  size_t widening() const { return widens ? size_of(fcclFloat32) / size_of(dtype) : 1; }
};

// A signature in the form that ranks exchange and hash. Ranks do not compare a field that is in no word. Every sub-call shows
// the count of the whole call, so that two different calls differ from their first sub-call on.
struct SignatureWords {
  // root (20 bits) | part (12 bits) | collective | type, with kWidens in its top bit | operator | issuer (8 bits each)
  uint64_t kind = 0;
  uint64_t count = 0;
  uint64_t counts = 0;

  bool operator==(const SignatureWords&) const = default;
};

// A call in full, as ranks show it to each other.
struct CallInFull {
  uint64_t number = 0;
  Signature signature;
};

inline constexpr int kPartBits = 12;
inline constexpr uint64_t kWidens = 0x80;  // set in the byte of the type

inline SignatureWords words_of(const Signature& s) {
  const uint32_t root_and_part = static_cast<uint32_t>(s.root) << kPartBits | (s.part & ((1U << kPartBits) - 1));
  return {static_cast<uint64_t>(root_and_part) << 32 | static_cast<uint64_t>(s.collective) << 24 |
              (static_cast<uint64_t>(s.dtype) | (s.widens ? kWidens : 0)) << 16 | static_cast<uint64_t>(s.op) << 8 |
              static_cast<uint64_t>(s.issuer),
          s.count + s.elsewhere, s.counts};
}

// Decodes words that a peer wrote, which may contain anything. Unknown values become fcclNumColls, fcclNumTypes and
// Issuer::first_call.
inline Signature signature_of(const SignatureWords& words) {
  const auto field = [&](int shift) { return static_cast<int>(words.kind >> shift & 0xff); };
  return {.collective = static_cast<fcclColl_t>(std::min<int>(field(24), fcclNumColls)),
          .dtype = static_cast<fcclDataType_t>(std::min<int>(field(16) & ~static_cast<int>(kWidens), fcclNumTypes)),
          .op = static_cast<ReduceOp>(field(8)),
          .root = static_cast<int32_t>(words.kind >> 32) >> kPartBits,
          .count = words.count,
          .issuer = static_cast<Issuer>(std::min<int>(field(0), static_cast<int>(Issuer::first_call))),
          .part = static_cast<uint32_t>(words.kind >> 32) & ((1U << kPartBits) - 1),
          .counts = words.counts,
          .widens = (words.kind >> 16 & kWidens) != 0};
}

// True if the words name a known collective, type, operator and issuer.
inline bool name_a_call(const SignatureWords& words) {
  const Signature s = signature_of(words);
  return is_known(s.collective) && is_valid(s.dtype) && s.op <= ReduceOp::premul_sum && words_of(s) == words;
}

// Hashes a call for comparison: two ranks' calls match if their hashes are equal. `number` is the communicator's count of
// calls. It reveals that a rank skipped a call even if the next call has equal arguments.
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

// Hashes the counts of all ranks, by rank, which every rank must pass alike.
uint64_t hash_of(std::span<const size_t> counts);

inline bool is_reduction(fcclColl_t collective) { return is_known(collective) && row_of(collective).reduces; }
inline bool is_rooted(fcclColl_t collective) { return is_known(collective) && row_of(collective).is_rooted(); }
// True if the larger buffer holds one block per rank.
inline bool has_rank_blocks(fcclColl_t collective) { return is_known(collective) && row_of(collective).has_rank_blocks(); }
const char* name_of(fcclColl_t collective);
// Examples: "AllGather of 1024 float32", "Reduce(sum) of 3 int32 with root 2", "AllReduce(sum) of 5 bfloat16 into float32".
// Uneven counts appear as their sum and their hash.
std::string describe(const Signature& signature);

}  // namespace fccl::core
