// published: measurements that others made with NCCL on these machines.
#pragma once

namespace fccl::core::model {

// AllGather of nccl-tests on p5.48xlarge, out of place, October 2025: data/nccl_all_gather.csv of
// github.com/crazyguitar/aws-gpu-communication-benchmark, fd167f97. Bus bandwidths in GB/s.
struct PublishedRow {
  int hosts;
  double of_64m, of_256m, of_1g;
};

inline constexpr PublishedRow kP5AllGather[] = {
    {2, 200.4, 215.6, 322.0}, {4, 138.9, 253.4, 288.5}, {8, 86.8, 215.4, 224.5},
    {16, 47.0, 144.1, 261.9}, {32, 25.0, 86.3, 222.4},
};

}  // namespace fccl::core::model
