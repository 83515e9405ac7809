// WirePlanner: decides how a call goes between hosts: with the entries or by a plan, and into which pieces its buffer is cut.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/call.h"
#include "hierarchical/task.h"
#include "kernels/reduce.h"
#include "plan/choose.h"
#include "plan/entry_rounds.h"
#include "plan/project.h"
#include "topology/columns.h"

namespace fccl::core {

// The facts that decide, besides the call; equal on all ranks.
struct WireSettings {
  CostConstants costs{};
  int rails = 1;                               // NICs of each host
  size_t payload_bytes = plan::kContentBytes;  // what fits behind an entry; equal on the members of a column
  size_t slot_bytes = 0;                       // size of the wire's slots
  size_t host_slot_bytes = 0;                  // the smallest slot size within any host
  WireType wire_type = WireType::call;
};

// The steps are those of the asking rank; null if it has no column, or if the payload goes with the entries. They live as long
// as the planner.
struct WirePlan {
  const plan::Steps* steps = nullptr;
  bool beside_entries = false;
  bool by_dissemination = false;  // how the entries go, as EntryRounds says
  bool is_whole = false;          // one chunk for all hosts; the call has one buffer
  bool hands_on = false;  // the plan forwards chunks that came, so the host's own contribution must be in the output, too
  Pieces pieces;  // in elements of the result's type; with a block for each pair of ranks, as if all blocks were as long as the
                  // longest
};

// A lane has one, used by the thread that runs its current call. Asking twice for the same plan allocates nothing.
class WirePlanner {
 public:
  WirePlanner(const Columns& columns, const WireSettings& settings);

  // `longest`: the bytes of the longest block of a call with a block for each pair of ranks.
  WirePlan wire_plan_of(const Call& call, size_t longest);
  // Prefers the algorithm of this name from now on, for collectives that have one; "": the cheapest algorithm.
  void prefer(std::string algorithm) { preferred_ = std::move(algorithm); }
  // True if a slot of the wire can hold the blocks of every pair of ranks of two hosts.
  bool has_room_for_pairs() const;
  fcclDataType_t partial_type(const Signature& signature) const;
  // Return the kernels that reduce the sources of a host's ranks to a partial, and the partials of all hosts to the total.
  ReduceKernel partial_kernel_of(const Signature& signature) const;
  ReduceKernel total_kernel_of(const Signature& signature) const;
  // Returns the blocks that a column carries in such a call; with a block for each pair of ranks, those of all hosts to one
  // rank each.
  const Blocks& blocks_of(const Signature& signature, bool is_whole, int column) const;

 private:
  struct Plan {
    plan::Steps steps;
    int most_chunks = 1;  // in one message
    bool is_whole = false;
  };

  // Counts the blocks that a message carries for each of its chunks, and the blocks that are staged for a slice; the largest
  // count of any column.
  struct Load {
    size_t in_message, in_slice;
  };

  // Says how finely a call is cut: the slices that suit it, and the chunks that the longest message carries.
  struct Cuts {
    int slices, most_chunks;
  };

  // Returns the bytes that a column of one host gives to another, if they go in one slice.
  std::optional<size_t> bytes_in_one_slice(const Call& call, size_t longest) const;
  bool goes_by_dissemination(const Signature& signature, std::optional<size_t> bytes_beside_entries) const;
  Load load_of(const Signature& signature, bool is_whole) const;
  Layout layout_of(const Call& call, bool is_whole, size_t longest) const;
  size_t limit(const Signature& signature, bool is_whole, int most_chunks) const;
  const Plan& plan_of(int algorithm, int root_host);
  int preferred_algorithm(fcclColl_t collective) const;
  // Returns the bytes of an element of the result or of a partial, whichever is wider.
  size_t widest_element(const Signature& signature) const;
  void cut(WirePlan& wire_plan, const Call& call, size_t longest, Cuts cuts) const;

  const Columns& columns_;
  WireSettings settings_;
  std::string preferred_;
  plan::Chooser chooser_;
  std::map<std::pair<int, int>, Plan> plans_;  // by algorithm and root's host
};

}  // namespace fccl::core
