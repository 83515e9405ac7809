// Route: the way of a call within a host, as a pure function of facts that are equal on all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/copy.h"

namespace fccl::core {

struct Call;
struct SegmentShape;

// The ways that the bytes of a call can take.
enum class Path : uint8_t { alone, mailbox, mapped, attach, ring, across };

constexpr const char* name_of(Path path) {
  switch (path) {
    case Path::alone:
      return "alone";
    case Path::mailbox:
      return "mailbox";
    case Path::mapped:
      return "mapped";
    case Path::attach:
      return "attach";
    case Path::ring:
      return "ring";
    case Path::across:
      return "across";
  }
  return "?";
}

// How the ranks share the work on a path. blocks: each rank takes or reduces its own blocks. whole: each rank reduces the whole
// vector. shards: each rank reduces a shard, and takes the others' results. of_two: one of two
// ranks, or each, reduces all of the vector.
enum class Variant : uint8_t { blocks, whole, shards, of_two };

// The thresholds by which routes are chosen. The sizes of the memory that ranks share stand in segment/segment.h.
struct Tuning {
  // The shortest block worth a call of the kernel that reads a peer's private memory: for AllGather, in which no slot holds a
  // block twice, and for AlltoAll. The latter holds for sends, too.
  size_t least_gathered = 8 << 10, least_exchanged = 32 << 10;
  // The size from which an out-of-place result should be written past the caches, which process_vm_readv does not do. It is
  // larger for AlltoAll, which copies every block twice on its way through slots.
  size_t past_caches = 4 << 20, exchanged_past_caches = 16 << 20;
  // Ranks read even such results from their peers if slots take this many times as long.
  double far_faster = 2;
  // Ranks write slots past the caches if those take this many times as long through the caches. Where the processors of the
  // host are near each other, that would take up to 1.5 times as long instead.
  double streaming_gains = 1.3;
  // The shortest payload of a box that is written as slots are.
  size_t least_put = 2 << 10;
  // With more ranks than these, slots are too short for a comparison, and an AlltoAll takes too long for init.
  int most_tried_ranks = 8;
  // The most bytes that a rank reads from its peers to reduce a whole vector itself. Beyond it, ranks share the work.
  size_t read_whole = 512 << 10;
  // The size below which two ranks send an in-place vector through slots, because they wait for each other less often there.
  size_t in_slots = 256 << 10;
  // The size from which peers read results from outputs instead of slots. A shorter result goes to a slot, so that its rank
  // need not wait until peers have taken it.
  size_t in_outputs = 256 << 10;
  // The size from which a call streams its result, unless the call reads the result again.
  size_t streamed = 2 << 20;
  // The bytes that a rank takes from its peers' memory at a time. The thread's other work gets a turn between two pieces, and
  // each piece has the whole deadline.
  size_t moved_piece = 1 << 20;
  // Ranks wait long for each other if a slice takes this many seconds more than two processors need to copy it for all ranks,
  // at this many bytes a second. Other programs hold the processors then.
  double long_wait = 1e-3, copied_a_second = 8e9;
  // The bytes that a rank reduces at a time. A result is then still in a cache when peers take it.
  size_t reduced_piece = 256 << 10;
};
inline constexpr Tuning kTuning;

// The fact that decided a route.
enum class Reason : uint8_t {
  one_rank,        // there is no peer
  fits_box,        // the longest payload fits in a box
  private_counts,  // ranks learn in the mailbox whether all payloads fit
  in_arenas,       // peers have mapped all inputs
  short_vector,    // mapped whole: every rank reads at most read_whole bytes
  long_vector,     // mapped shards: it would read more
  in_place,        // mapped shards: a rank in place would overwrite a vector that its peers read
  short_in_place,  // ring: two ranks, one of them in place, and fewer bytes than in_slots
  long_block,      // attach: the longest block reaches the lane's least
  short_block,     // ring: it does not
  past_caches,     // ring: a long result out of place
  private_memory   // ring: peers can read nothing else
};

// All but `streams` are equal on all ranks.
struct Route {
  Path path = Path::alone;
  Variant variant = Variant::blocks;
  Reason reason = Reason::one_rank;
  bool streams = false;     // this rank writes its result past the caches
  bool to_outputs = false;  // peers take reduced shards from outputs, not from slots
  size_t piece = 0;         // bytes of an input that a rank handles at a time; 0 if it handles all at once

  bool operator==(const Route&) const = default;
};

// The state of cross-memory attach on a lane; equal on all ranks, even on one that cannot reach its peers itself.
struct Attaching {
  bool is_open = false;      // ranks may read their peers' private memory
  bool past_caches = false;  // also for long results out of place
  size_t least_block = 0;    // the shortest block that is read
};

// The offers of all ranks for a call, summed up.
struct Offers {
  bool all_read = true;         // every rank can read its peers' private memory
  bool all_in_place = true;     // every rank's own block lies in its output already
  bool any_in_place = false;    // the block of some rank does
  bool any_waits_long = false;  // some rank has waited long for others in its last call through slots
  bool mapped = false;          // peers have mapped every input that they read
  bool outputs_mapped = false;

  bool operator==(const Offers&) const = default;
};

// A view of the facts; their owners must outlive it.
struct Facts {
  const Call& call;
  const SegmentShape& shape;
  const Attaching& attaching;
  const Offers& offers;
  size_t box_bytes = 0;
  bool past_mailbox = false;  // the call does not fit in the mailbox, or ranks have offered memory for it
  bool long_slices = false;   // ranks waited long for each other in the call before the last one through slots
  const Tuning& tuning = kTuning;
};

Route route_of(const Facts& facts);

// Returns the route of a call that needs no offers, as its data lies beside the words or there is one rank. Returns nothing for
// a longer call than fits in boxes of `box_bytes`.
std::optional<Route> route_without_offers(const Call& call, int ranks, size_t box_bytes);

// True if ranks waited long for each other in a call that took `seconds` after all ranks had entered it.
bool waited_long(const Route& route, int ranks, uint64_t slices, double seconds, const Tuning& tuning = kTuning);

// Returns the room that the busiest rank needs beside its word. Not for AlltoAllV, where a rank does not know the others'
// counts.
size_t mailbox_bytes(const Call& call, int ranks);

// The way to copy a result.
inline CopyBytes copy_of(const Route& route) { return route.streams ? stream_bytes : copy_bytes; }

}  // namespace fccl::core
