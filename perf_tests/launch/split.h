// Divides processes into groups that run together: all, or as FCCL_TESTS_SPLIT and FCCL_TESTS_SPLIT_MASK say.
#pragma once

#include "environment.h"
#include "fccl/fccl.hpp"

namespace fccl::perf {

// One process's group: the processes of one color, in their order.
struct Group {
  int color = 0;
  int leader = 0;     // the process whose unique id the group uses
  int index = 0;      // this process's place in the group
  int processes = 1;  // number of processes in it
};

// Every process computes the same groups. FCCL_TESTS_SPLIT is AND, OR, MOD or DIV (or & | % /) and a number in C's notation or
// 0b; FCCL_TESTS_SPLIT_MASK, a hexadecimal number, means AND and wins.
Result<Group> group_of(const Environment& environment, int process, int processes);

}  // namespace fccl::perf
