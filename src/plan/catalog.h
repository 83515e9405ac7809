// The catalog of wire algorithms. To add an algorithm, write its function and add one line here.
#pragma once

#include <array>
#include <cstdint>

#include "fccl/fccl.h"
#include "plan/bruck.h"
#include "plan/chain.h"
#include "plan/direct.h"
#include "plan/pairwise.h"
#include "plan/tree.h"

namespace fccl::core::plan {

// The number of chunks that a slice of the buffer is cut into.
enum class Cut : uint8_t { whole, per_member };

template <class Sink>
struct Algorithm {
  fcclColl_t collective;
  const char* name;
  Cut cut;
  void (*tell)(Group, Sink&);
};

// An algorithm's index in this list identifies it; the list is the same for every sink.
template <class Sink>
inline constexpr std::array kCatalog{
    Algorithm<Sink>{fcclCollAllGather, "pairwise", Cut::per_member, pairwise_all_gather<Sink>},
    Algorithm<Sink>{fcclCollAllGather, "bruck", Cut::per_member, bruck_all_gather<Sink>},
    Algorithm<Sink>{fcclCollReduceScatter, "pairwise", Cut::per_member, pairwise_reduce_scatter<Sink>},
    Algorithm<Sink>{fcclCollAllReduce, "pairwise", Cut::per_member, pairwise_all_reduce<Sink>},
    Algorithm<Sink>{fcclCollAllReduce, "direct", Cut::whole, direct_all_reduce<Sink>},
    Algorithm<Sink>{fcclCollBroadcast, "tree", Cut::whole, tree_broadcast<Sink>},
    Algorithm<Sink>{fcclCollBroadcast, "chain", Cut::whole, chain_broadcast<Sink>},
    Algorithm<Sink>{fcclCollBroadcast, "scattered", Cut::per_member, scattered_broadcast<Sink>},
    Algorithm<Sink>{fcclCollReduce, "direct", Cut::whole, direct_reduce<Sink>},
    Algorithm<Sink>{fcclCollReduce, "scattered", Cut::per_member, scattered_reduce<Sink>},
    Algorithm<Sink>{fcclCollGather, "direct", Cut::per_member, direct_gather<Sink>},
    Algorithm<Sink>{fcclCollScatter, "direct", Cut::per_member, direct_scatter<Sink>},
    Algorithm<Sink>{fcclCollAlltoAll, "pairwise", Cut::per_member, pairwise_all_to_all<Sink>},
    Algorithm<Sink>{fcclCollBarrier, "bruck", Cut::per_member, bruck_all_gather<Sink>},
};

}  // namespace fccl::core::plan
