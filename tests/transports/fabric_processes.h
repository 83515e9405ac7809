// FabricProcesses: a test's processes over a fabric of its choice.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "transports/fabric.h"
#include "transports/processes.h"

namespace fccl {

class FabricProcesses : public testing::Test, protected Processes {
 protected:
  void start_over(const simulated::FabricOptions& options, int processes = 2, int messages = 64) {
    fabric_.emplace(options);
    std::vector<std::unique_ptr<Transport>> transports;
    for (int process = 0; process < processes; ++process) transports.push_back(fabric_->open());
    start(std::move(transports), messages);
  }

  std::optional<simulated::Fabric> fabric_;
};

}  // namespace fccl
