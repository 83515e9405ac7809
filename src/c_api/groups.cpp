// The C interface: groups of calls.
#include "c_api/report.h"
#include "communicator/group.h"

using fccl::core::Group;
using fccl::core::report;

extern "C" {

fcclResult_t fcclGroupStart(void) {
  Group::start();
  return fcclSuccess;
}

fcclResult_t fcclGroupEnd(void) { return report(__func__, Group::of_thread().end()); }

fcclResult_t fcclGroupSimulateEnd(fcclSimInfo_t* simInfo) {
  const auto seconds = Group::of_thread().simulate_end();
  if (!seconds) return report(__func__, seconds);
  if (simInfo == nullptr || simInfo->magic != FCCL_SIM_INFO_MAGIC || simInfo->size < sizeof(fcclSimInfo_t))
    return fccl::core::refuse(__func__,
                              "simInfo was not initialised: start from FCCL_SIM_INFO_INITIALIZER. The group has ended");
  simInfo->estimatedTime = static_cast<float>(*seconds * 1e6);
  return fcclSuccess;
}

}  // extern "C"
