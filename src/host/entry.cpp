// The entry of every call that is longer than the mailbox: no data moves before all ranks have entered the same call.
#include "host/lane.h"
#include "host/offer.h"
#include "host/phases.h"
#include "host/task.h"

namespace fccl::core {

Phase enter([[maybe_unused]] FrameMemory& frame, Lane& lane, Task task) {
  enter_with_offer(lane, task);
  for (int i = 1; i < lane.ranks(); ++i) {
    co_await lane.entered(lane.peer(i));
    if (!lane.agrees(lane.peer(i))) co_return Differs{lane.rank_of(lane.peer(i))};
  }
  co_return GoOnBy{route_by_offers(lane, task.call)};
}

}  // namespace fccl::core
