// Names and texts of calls.
#include "base/call.h"

#include <fmt/format.h>

#include <array>

namespace fccl {
namespace {

struct CollectiveRow {
  const char* name;
  bool reduces;
  bool rooted;
  bool has_rank_blocks;
};

constexpr std::array<CollectiveRow, fcclNumColls> kCollectives{{{"AllReduce", true, false, false},
                                                                {"Broadcast", false, true, false},
                                                                {"Reduce", true, true, false},
                                                                {"AllGather", false, false, true},
                                                                {"ReduceScatter", true, false, true},
                                                                {"Gather", false, true, true},
                                                                {"Scatter", false, true, true},
                                                                {"Barrier", false, false, false}}};

bool is_known(fcclColl_t collective) { return static_cast<unsigned>(collective) < kCollectives.size(); }

}  // namespace

bool is_reduction(fcclColl_t collective) { return is_known(collective) && kCollectives[collective].reduces; }

bool is_rooted(fcclColl_t collective) { return is_known(collective) && kCollectives[collective].rooted; }

bool has_rank_blocks(fcclColl_t collective) { return is_known(collective) && kCollectives[collective].has_rank_blocks; }

const char* name_of(fcclColl_t collective) { return is_known(collective) ? kCollectives[collective].name : "?"; }

std::string describe(const Signature& s) {
  if (s.issuer != Issuer::user) return s.issuer == Issuer::init ? "fcclCommInitRank" : "fcclCommSplit";
  std::string text = name_of(s.collective);
  if (s.collective == fcclCollBarrier) return text;
  if (is_reduction(s.collective)) text += fmt::format("({})", name_of(s.op));
  text += fmt::format(" of {} {}", s.count, name_of(s.dtype));
  if (is_rooted(s.collective)) text += fmt::format(" with root {}", s.root);
  return text;
}

}  // namespace fccl
