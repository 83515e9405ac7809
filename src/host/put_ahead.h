// put_ahead: puts the first slice of a call into slots before the rank enters the call.
#pragma once

namespace fccl::core {

class Lane;
struct Call;
struct Offer;

// Peers then find the slice as soon as they know that all ranks have entered, which saves a wait of all for all. Does nothing
// unless the call will go by the ring whatever the peers offer, and the slot is free: a peer may still read the last slice of
// the call before.
void put_ahead(Lane& lane, const Call& call, const Offer& offer);

}  // namespace fccl::core
