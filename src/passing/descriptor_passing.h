// Descriptor passing: the ranks of a host give each other descriptors by their listeners, while their communicator is made.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "os/descriptor.h"
#include "waiting/wait_limit.h"

namespace fccl::core {

struct Joined;

// Gives `fds`, one or two, to each of `ranks`, which call `receive_descriptors` for as many with this rank as leader. All of
// them are ranks of this host. Strangers who connect during it are refused. Between two hand-outs of one Joined these ranks
// must meet.
Result<void> send_descriptors(const Joined& joined, std::span<const int> fds, const std::vector<int>& ranks,
                              const WaitLimit& limit);
Result<std::vector<Descriptor>> receive_descriptors(const Joined& joined, int leader, size_t count, const WaitLimit& limit);
// Gives `fd` to the ranks of all other processes, and returns theirs, by rank; a rank of this process has none. All ranks of a
// communicator of one host call it, and no rank hands out anything meanwhile.
Result<std::vector<Descriptor>> swap_descriptors(const Joined& joined, int fd, const WaitLimit& limit);

}  // namespace fccl::core
