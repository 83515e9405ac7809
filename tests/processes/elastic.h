// Shrinks and growths as tests call them, and whether what comes of them works.
#pragma once

#include <string>
#include <vector>

#include "processes/trial.h"

namespace fccl::core::testing {

// The communicator that a call made, or why it did not.
struct Made {
  fcclResult_t result = fcclSuccess;
  fcclComm_t comm = nullptr;
  std::string text{};
};

inline Made shrink(fcclComm_t comm, std::vector<int> excluded, int flags = FCCL_SHRINK_DEFAULT,
                   fcclConfig_t* config = nullptr) {
  Made made;
  made.result = fcclCommShrink(comm, excluded.data(), static_cast<int>(excluded.size()), &made.comm, config, flags);
  if (made.result != fcclSuccess) made.text = fcclGetLastError(nullptr);
  return made;
}

// As a rank of the parent, or as a new one where that is null.
inline Made grow(fcclComm_t parent, int ranks, const fcclUniqueId* id, int rank, int deadline_ms = 0) {
  fcclConfig_t config = config_of_tests();
  if (deadline_ms > 0) config.initTimeoutMs = deadline_ms;
  Made made;
  made.result = fcclCommGrow(parent, ranks, id, parent == nullptr ? rank : -1, &made.comm, &config);
  if (made.result != fcclSuccess) made.text = fcclGetLastError(nullptr);
  return made;
}

// The communicator of the first `ranks` seats; null on the others. Collective over all seats.
inline fcclComm_t make_parent(const Seat& seat, int ranks) {
  const fcclUniqueId id = agree_on_id(seat);
  fcclConfig_t config = config_of_tests();
  fcclComm_t comm = nullptr;
  if (seat.rank < ranks) {
    EXPECT_TRUE(succeeded(fcclCommInitRankConfig(&comm, ranks, id, seat.rank, &config)));
  }
  return comm;
}

// The rank `host` of the parent makes the id, and all seats know it. Collective over all seats.
inline fcclUniqueId agree_to_grow(const Seat& seat, fcclComm_t parent, int host = 0) {
  if (seat.rank == host) {
    EXPECT_TRUE(succeeded(fcclCommGetUniqueId(parent, &seat.board.id)));
  }
  seat.meet();
  const fcclUniqueId id = seat.board.id;
  seat.meet();
  return id;
}

// The fault of a communicator of these ranks, as the rank of this number sees it; "" if it is good.
inline std::string fault_as_rank(fcclComm_t comm, int rank, int ranks, const Placement& placement = {}) {
  int own = -1, count = -1;
  if (fcclCommUserRank(comm, &own) != fcclSuccess || fcclCommCount(comm, &count) != fcclSuccess) return "nothing known";
  if (own != rank || count != ranks) return "rank " + std::to_string(own) + " of " + std::to_string(count);
  for (const fcclColl_t collective : {fcclCollAllReduce, fcclCollAllGather, fcclCollReduceScatter})
    for (const size_t elements : {5, 40'000}) {
      Trial trial({.collective = collective, .dtype = fcclInt32, .count = elements, .iteration = ranks}, rank, ranks,
                  placement);
      if (const fcclResult_t result = trial.issue(comm); result != fcclSuccess) return fcclGetLastError(nullptr);
      if (std::string fault = trial.fault(); !fault.empty()) return fault;
    }
  return "";
}

}  // namespace fccl::core::testing
