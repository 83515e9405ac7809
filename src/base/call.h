// Call: one collective as the user asked for it, and the hash by which ranks compare their calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/collective.h"
#include "base/dtype.h"
#include "fccl/fccl.h"

namespace fccl {

// Who issues a call: the user, or fcclCommInitRank or fcclCommSplit as a step of theirs, which must not meet a user's call.
enum class Issuer : uint8_t { user, init, split };

// What every rank must agree on. `count` is the count argument of the C call, in elements.
struct Signature {
  fcclColl_t collective = fcclCollBarrier;
  fcclDataType_t dtype = fcclInt8;
  ReduceOp op = ReduceOp::sum;  // sum where nothing is reduced
  int root = -1;                // -1 where there is none
  size_t count = 0;
  Issuer issuer = Issuer::user;

  const Collective& row() const { return row_of(collective); }
  // Of a block.
  size_t bytes() const { return count * size_of(dtype); }
};

// One rank's call: the signature, and what is this rank's own.
struct Call {
  Signature signature;
  const void* send = nullptr;
  void* recv = nullptr;
  Scalar scalar = {};  // this rank's factor of a pre-multiplied sum
};

// Two ranks' calls match if they have equal hashes: `number` is the communicator's count of calls, so that a skipped call shows
// even where the next one has equal arguments.
inline uint32_t hash_of(const Signature& s, uint32_t number) {
  uint64_t h = (uint64_t{number} << 32) | (static_cast<uint64_t>(s.collective) << 24) | (static_cast<uint64_t>(s.dtype) << 16) |
               (static_cast<uint64_t>(s.op) << 8) | static_cast<uint64_t>(s.issuer);
  h ^= s.count * 0x9e3779b97f4a7c15ULL;
  h ^= h >> 29;
  h *= 0xbf58476d1ce4e5b9ULL;
  h += static_cast<uint64_t>(static_cast<uint32_t>(s.root)) * 0x94d049bb133111ebULL;
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93ULL;
  return static_cast<uint32_t>(h >> 32);
}

bool is_reduction(fcclColl_t collective);
bool is_rooted(fcclColl_t collective);
// Whether the larger buffer has a block for each rank, and is not one whole.
bool has_rank_blocks(fcclColl_t collective);
const char* name_of(fcclColl_t collective);
// "AllGather of 1024 float32", "Reduce(sum) of 3 int32 with root 2".
std::string describe(const Signature& signature);

}  // namespace fccl
