// How many bytes a rank's processor reads in a call.
#pragma once

#include <cstddef>

#include "host/route.h"

namespace fccl::core {

struct Call;

// Returns the bytes that the rank reads on this route to copy them or to add them, its own and those of its peers. `rank` is
// the communicator's number. Between hosts it is bytes_of, without what the rank passes on for others.
size_t bytes_read(const Route& route, const Call& call, int rank, int ranks);
// Returns the bytes that the rank gives and those that it takes, together.
size_t bytes_of(const Call& call, int rank, int ranks);

}  // namespace fccl::core
