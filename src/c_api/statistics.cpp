// The C interface: counters, and the cost of an init.
#include "metrics/statistics.h"

#include <fmt/format.h>

#include "c_api/handle.h"
#include "c_api/report.h"
#include "c_api/structure.h"
#include "operations/init_cost.h"

using fccl::core::refuse;
using fccl::core::report;

extern "C" {

fcclResult_t fcclCommGetCounter(fcclComm_t comm, fcclColl_t coll, fcclCounter_t* counter) {
  if (comm == nullptr || counter == nullptr) return refuse(__func__, "comm or counter is NULL");
  if (const auto made = fccl::core::check_made(comm); !made) return report(__func__, made);
  if (static_cast<unsigned>(coll) >= fcclNumColls)
    return refuse(__func__, fmt::format("{} is not an fcclColl_t", static_cast<int>(coll)));
  *counter = comm->communicator->statistics().of(coll);
  return fcclSuccess;
}

fcclResult_t fcclGetProcessCounter(fcclColl_t coll, fcclCounter_t* counter) {
  if (counter == nullptr) return refuse(__func__, "counter is NULL");
  if (static_cast<unsigned>(coll) >= fcclNumColls)
    return refuse(__func__, fmt::format("{} is not an fcclColl_t", static_cast<int>(coll)));
  *counter = fccl::core::Statistics::of_process(coll);
  return fcclSuccess;
}

fcclResult_t fcclCommGetInitCost(fcclComm_t comm, fcclInitCost_t* cost) {
  if (comm == nullptr || cost == nullptr) return refuse(__func__, "comm or cost is NULL");
  if (const auto made = fccl::core::check_made(comm); !made) return report(__func__, made);
  const fccl::core::InitCost& known = comm->communicator->init_cost();
  fcclInitCost_t told{};
  told.seconds = known.all();
  told.rosterSeconds = known.roster;
  told.segmentSeconds = known.segment;
  told.barrierSeconds = known.barrier;
  told.networkSeconds = known.network;
  told.hostsSeconds = known.hosts;
  told.sockets = known.traffic.sockets;
  told.messages = known.traffic.messages;
  told.bytes = known.traffic.bytes;
  told.sharedBytes = known.shared_bytes;
  told.localRanks = known.local_ranks;
  return fccl::core::give(__func__, told, cost);
}

const char* fcclCollName(fcclColl_t coll) { return fccl::core::name_of(coll); }

}  // extern "C"
