// The entry of every call that is longer than the mailbox: no rank takes data before all ranks have entered the same call.
#include "host/lane.h"
#include "host/offer.h"
#include "host/phases.h"
#include "host/put_ahead.h"
#include "host/task.h"

namespace fccl::core {

Phase enter([[maybe_unused]] FrameMemory& frame, Lane& lane, Task task) {
  const Offer offer = make_offer(lane, task.call);
  put_ahead(lane, task.call, offer);
  enter_with_offer(lane, task, offer);
  for (int i = 1; i < lane.ranks(); ++i) {
    co_await lane.entered(lane.peer(i));
    if (!lane.agrees(lane.peer(i))) co_return Differs{lane.rank_of(lane.peer(i))};
  }
  co_return GoOnBy{route_by_offers(lane, task.call)};
}

}  // namespace fccl::core
