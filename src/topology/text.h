// The text form of a topology: one line per host, NIC, GPU and rank; docs/topology.md describes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "topology/topology.h"

namespace fccl {

// One text for one value: equal topologies have equal texts, and parsing gives the value back.
std::string to_text(const Topology& topology);

// Any bytes will do as input. Error: fcclInvalidUsage, naming the line, what stands there and what was expected.
Result<Topology> parse_topology(std::string_view text);

// By which ranks compare their topologies: SipHash of the text.
uint64_t hash_of(const Topology& topology);

// "line 3 is "nic eth0" on rank 0, but "nic eth1" on rank 7", or "" where the texts are equal.
std::string first_difference(int rank, std::string_view text, int other_rank, std::string_view other_text);

}  // namespace fccl
