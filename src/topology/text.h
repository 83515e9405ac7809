// The text form of a topology: one line per host, NIC, GPU and rank; docs/reference/topology.md describes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "topology/topology.h"

namespace fccl::core {

// Writes a topology. Equal topologies have equal texts, and parsing a text returns the same topology.
std::string to_text(const Topology& topology);

// Parses any bytes. Error: fcclInvalidUsage with the line, its text and the expected text.
Result<Topology> parse_topology(std::string_view text);

// Returns SipHash of the text, by which ranks compare their topologies.
uint64_t hash_of(const Topology& topology);

// Quotes foreign text for a message: shortened, without control characters.
std::string quoted(std::string_view text);

// Returns a text such as "line 3 is "nic eth0" on rank 0, but "nic eth1" on rank 7", or "" if the texts are equal.
std::string first_difference(int rank, std::string_view text, int other_rank, std::string_view other_text);

}  // namespace fccl::core
