// CostConstants: what the parts of a message between hosts cost. They decide which algorithm is chosen.
#pragma once

namespace fccl::core {

// Times in seconds. They must be equal on all ranks. 0 means that a constant is missing.
struct CostConstants {
  double latency = 0;     // alpha: the time from the end of a send until the receiver may continue
  double message = 0;     // o: a rank's time per message
  double wire_byte = 0;   // beta: time per byte on one rail, in one direction
  double added_byte = 0;  // gamma: time per byte that a rank reads to add it
  double host_byte = 0;   // nu: time per byte that a rank copies within its host
};

}  // namespace fccl::core
