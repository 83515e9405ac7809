// FabricProcesses: a test's processes over a fabric of its choice.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "transports/fabric.h"
#include "transports/processes.h"

namespace fccl::core {

class FabricProcesses : public testing::Test, protected Processes {
 protected:
  void start_over(const simulated::FabricOptions& options, int number = 2, int messages = 64) {
    fabric.emplace(options);
    std::vector<std::unique_ptr<Transport>> transports;
    for (int i = 0; i < number; ++i) transports.push_back(fabric->open());
    start(std::move(transports), messages);
  }

  std::optional<simulated::Fabric> fabric;
};

}  // namespace fccl::core
