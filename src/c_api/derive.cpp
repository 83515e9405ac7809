// The loan is taken before the thread starts, and given back before the new handle is ready.
#include "c_api/derive.h"

#include <utility>

#include "c_api/handle.h"
#include "c_api/report.h"
#include "communicator/group.h"

namespace fccl::core {
namespace {

Result<fcclComm_t> begin(fcclComm_t parent, const Derive& make) {
  parent->loans.take();
  // The loan ends before the new handle says that it is made.
  auto begun = begin_making([=](const CancelCheck& cancel_check) {
    const Loan loan(parent->loans);
    return make(*parent->communicator, cancel_check);
  });
  if (!begun) parent->loans.give_back();
  return begun;
}

}  // namespace

Result<fcclComm_t> begin_making(PendingCommunicator::Make make) {
  auto handle = std::make_unique<fcclComm>();
  FCCL_TRY_ASSIGN(auto pending, PendingCommunicator::start(std::move(make), handle->communicator));
  handle->pending = std::move(pending);
  return handle.release();
}

fcclResult_t make_or_group(const char* function, std::function<Result<void>()> make) {
  if (!Group::is_open()) return report(function, make());
  Group::of_thread().add(std::move(make));
  return fcclSuccess;
}

fcclResult_t derive(const char* function, fcclComm_t parent, fcclComm_t* newcomm, const Derive& make, bool waits) {
  if (!waits && Group::is_open())
    return refuse(function,
                  "config.blocking = 0 in a group: its calls of the parent would be issued by two threads. Leave it out there");
  if (!waits) {
    const auto begun = begin(parent, make);
    if (!begun) return report(function, begun);
    *newcomm = *begun;
    return fcclInProgress;
  }
  return make_or_group(function, [=]() -> Result<void> {
    FCCL_TRY_ASSIGN(auto made, make(*parent->communicator, {}));
    if (made) *newcomm = new fcclComm{std::move(made)};
    return {};
  });
}

}  // namespace fccl::core
