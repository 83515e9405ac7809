// Splits a process group of the backend "fccl".
#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <mutex>

#include "backend.h"
#include "errors.h"

namespace fccl::torch {
namespace {

struct Part {
  int color;
  int key;
  Membership membership;
};

// Makes this rank's end of a communicator; null for a rank without one.
fcclComm_t split_off(Communicator& parent, const Part& part, fcclMemoryKind_t kind) {
  fcclConfig_t config = config_of(part.membership, kind);
  fcclComm_t child = nullptr;
  const std::string attempt = parent.attempt_of("fccl:split");
  check(fcclCommSplit(parent.open("fccl:split"), part.color, part.key, &child, &config), attempt);
  if (part.color == FCCL_SPLIT_NOCOLOR) return nullptr;
  int joined = 0;
  check(fcclCommCount(child, &joined), attempt);
  if (joined == part.membership.size) return child;
  (void)fcclCommDestroy(child);
  check(fcclInvalidUsage, attempt,
        c10::str("this rank's list has ", part.membership.size, " ranks, but ", joined,
                 " joined: all ranks must give the same lists")
            .c_str());
  return nullptr;
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> Backend::split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                                 const c10::intrusive_ptr<Options>& options) {
  const auto place = std::find(ranks.begin(), ranks.end(), getRank());
  const bool member = place != ranks.end();
  // Groups do not overlap, so the lowest rank names one.
  const int lowest = member ? *std::min_element(ranks.begin(), ranks.end()) : 0;
  const int key = static_cast<int>(place - ranks.begin());
  const Part part{
      member ? lowest : FCCL_SPLIT_NOCOLOR, key, {key, static_cast<int>(ranks.size()), options->timeout, options->group_name}};
  Communicator& cpu = cpu_->communicator();
  Communicator& device = device_->communicator();
  const std::scoped_lock turns(cpu.turn(), device.turn());
  if (split_store_ == store && split_ranks_ == ranks) return split_child_.lock();

  c10::intrusive_ptr<Backend> child;
  // If the parent has not made a communicator yet, the child also makes its own at first use.
  if (member) {
    child = c10::make_intrusive<Backend>(part.membership, store, c10::str("fccl/", options->group_name, "/", lowest, "/"));
  }
  const std::string identity = c10::str(cpu.identity(), "/", options->group_name, "/", lowest);
  if (cpu.is_made()) {
    if (const fcclComm_t comm = split_off(cpu, part, fcclMemoryCpu)) child->cpu_->communicator().adopt(comm, identity);
  }
  if (device.is_made()) {
    const c10::OptionalDeviceGuard guard(device_->device());
    if (const fcclComm_t comm = split_off(device, part, fcclMemoryCuda)) child->device_->adopt(comm, *device_->device());
  }
  split_store_ = store;
  split_ranks_ = ranks;
  split_child_ = c10::weak_intrusive_ptr<c10d::Backend>(child);
  return child;
}

}  // namespace fccl::torch
