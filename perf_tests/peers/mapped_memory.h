// Memory that every rank of a host maps, so that each of them finds there what the others have.
#pragma once

#include <cstddef>
#include <vector>

#include "launch/team.h"
#include "memory.h"

namespace fccl::perf {

// One rank's part of it, and where that of the others is mapped. Made, used and destroyed by one thread; all ranks allocate the
// same at the same time, and are on one host. After a failure it is of no use.
class MappedMemory : public HostMemory {
 public:
  MappedMemory(Team& team, int thread) : team_(team), thread_(thread) {}
  ~MappedMemory() override;

  // Zeros, of which no page is new to any rank.
  Result<std::byte*> allocate(std::size_t bytes) override;
  // Where `rank` has what this rank has at `own`.
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
