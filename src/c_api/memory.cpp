// The C interface: memory that peers map, and registration.
#include <fmt/format.h>

#include <algorithm>

#include "arena/arena.h"
#include "c_api/handle.h"
#include "c_api/report.h"
#include "c_api/structure.h"
#include "device/landing.h"

using namespace fccl::core;

extern "C" {

fcclResult_t fcclMemAlloc(void** ptr, size_t size) {
  if (ptr == nullptr) return refuse(__func__, "ptr is NULL");
  const auto memory = process_arena().allocate(size);
  *ptr = memory ? *memory : nullptr;
  return report(__func__, memory);
}

fcclResult_t fcclMemFree(void* ptr) { return report(__func__, process_arena().free(ptr)); }

fcclResult_t fcclMemGetUsage(fcclMemUsage_t* usage) {
  if (usage == nullptr) return refuse(__func__, "usage is NULL");
  const ArenaUsage known = process_arena().usage();
  fcclMemUsage_t told{};
  told.allocated = known.bytes;
  told.mostAllocated = known.most;
  told.filled = known.filled;
  told.reserved = known.reserved;
  const LandingSlots::Bytes slots = LandingSlots::of_process();
  told.gatherSlots = slots.gather;
  told.pairSlots = slots.pair;
  return give(__func__, told, usage);
}

fcclResult_t fcclCommRegister(const fcclComm_t comm, void* buff, size_t size, void** handle) {
  if (comm == nullptr) return refuse(__func__, "comm is NULL");
  if (handle == nullptr) return refuse(__func__, "handle is NULL");
  if (const auto made = check_made(comm); !made) return report(__func__, made);
  if (buff == nullptr && size > 0) return refuse(__func__, fmt::format("buff is NULL with size {}", size));
  *handle = comm->registrations.emplace_back(new fcclRegistration{buff, size}).get();
  return fcclSuccess;
}

fcclResult_t fcclCommDeregister(const fcclComm_t comm, void* handle) {
  if (comm == nullptr) return refuse(__func__, "comm is NULL");
  if (std::erase_if(comm->registrations, [&](const auto& known) { return known.get() == handle; }) == 0)
    return refuse(__func__, fmt::format("handle {} is none that fcclCommRegister gave for this communicator", handle));
  return fcclSuccess;
}

}  // extern "C"
