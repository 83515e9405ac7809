// Judge: what must hold after a run.
#pragma once

#include <string>
#include <vector>

#include "faults/board.h"
#include "faults/draw.h"
#include "faults/supervisor.h"

namespace fccl::core::faults {

// Lists the faults of a run; empty if it is good.
std::vector<std::string> judge(const Draw& draw, const Board& board, const Observation& seen);

}  // namespace fccl::core::faults
