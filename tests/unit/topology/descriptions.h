// The descriptions of machines in tests/topologies, for tests.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "topology/text.h"

namespace fccl::core {

inline constexpr const char* kDescriptions[] = {"p4d.24xlarge", "p5.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge"};

inline std::string description_of(const std::string& machine) {
  std::ifstream file(std::string(FCCL_TEST_TOPOLOGIES) + "/" + machine + ".txt");
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Topology topology_of(std::string_view text) {
  const auto topology = parse_topology(text);
  EXPECT_TRUE(topology) << topology.error().message;
  return topology ? *topology : Topology{};
}

// Returns the described machine, with one rank for each of its GPUs.
inline Host machine(const std::string& name) { return topology_of(description_of(name)).hosts().at(0); }

}  // namespace fccl::core
