// Memory that every rank of a host maps, so that each rank can read the others' buffers.
#pragma once

#include <cstddef>
#include <vector>

#include "launch/team.h"
#include "memory.h"

namespace fccl::perf {

// One rank's part of it, and the mappings of the others' parts. One thread makes, uses and destroys it; all ranks are on one
// host, and allocate the same at the same time. After a failure it cannot be used.
class MappedMemory : public HostMemory {
 public:
  MappedMemory(Team& team, int thread) : team_(team), thread_(thread) {}
  ~MappedMemory() override;

  // Returns zeroed memory that every rank has touched already.
  Result<std::byte*> allocate(std::size_t bytes) override;
  // Returns the place of `rank` that corresponds to this rank's `own`.
  std::byte* of(int rank, const void* own) const;

 private:
  struct Segment {
    std::size_t bytes;
    std::vector<std::byte*> begins;  // by rank
  };

  Result<void> map_peers(Segment& segment, int file);

  Team& team_;
  const int thread_;
  std::vector<Segment> segments_;
};

}  // namespace fccl::perf
