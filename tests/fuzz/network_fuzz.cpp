// Fuzzes what other hosts tell of the network, and what the ranks of a host tell each other of its NICs.
#include <algorithm>
#include <cstring>

#include "creation/column_nics.h"
#include "creation/network.h"
#include "fuzz/fuzz.h"
#include "topology/costs.h"
#include "topology/provider.h"

namespace fccl::core::fuzz {
namespace {

constexpr CostConstants kCosts{2e-5, 1e-6, 1e-9, 1e-10, 1e-10};

// Ranks 0 and 2 are column 0, 1 and 3 are column 1, and 4 has none.
Columns columns_of(int rank) { return Columns({{0, 1}, {2, 3, 4}}, rank); }

std::string end_of_host(const NetworkEnd& end, int rails) {
  std::string bytes;
  for (int column = 0; column < 2; ++column) {
    append(bytes, end);
    for (int lane = 0; lane < kLanes; ++lane) append(bytes, Introduction{.rails = rails, .rail = {}});
  }
  return bytes;
}

// A length of 2 bytes, so much of the first host, and the rest of the second.
std::string input_of(const std::string& first, const std::string& second) {
  const auto size = static_cast<uint16_t>(first.size());
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + first + second;
}

void read_as_hosts(Input input) {
  const size_t low = input.byte(), size = low + 256 * size_t{input.byte()};
  const std::string first(input.text(size));
  const std::vector<std::string> by_host{first, std::string(input.rest())};
  for (const int rank : {0, 3, 4}) {
    const auto network = read_network(by_host, columns_of(rank), [](int each) { return std::to_string(each); });
    if (!network) {
      check(!network.error().message.empty(), "a refusal says why");
      continue;
    }
    check(network->rails > 0 && fault_of(network->costs).empty() && is_provider_name(network->provider),
          "what is taken means something");
    for (const auto& introductions : network->introductions) {
      check(introductions.size() == (rank == 4 ? 0u : 2u), "the members of a column are introduced");
      for (const Introduction& each : introductions)
        check(each.rails >= 0 && each.rails <= Introduction::kMostRails,
              "an introduction has no more rails than there is room");
    }
  }
}

// Reads the same bytes as the words that every rank tells.
void read_as_rank_ends(Input input) {
  const size_t low = input.byte(), size = low + 256 * size_t{input.byte()};
  const std::string first(input.text(size));
  const auto ends = read_rank_ends({first, std::string(input.rest())}, columns_of(0));
  if (!ends) return check(!ends.error().message.empty(), "a refusal says why");
  check(ends->size() == 5, "every rank is introduced");
  for (const RankEnd& each : *ends) {
    check(each.transfers.rails >= 0 && each.transfers.rails <= Introduction::kMostRails,
          "an introduction has no more rails than there is room");
    check(each.meeting_place.port > 0, "a rank can be met");
  }
}

// The same on all ranks, whatever one of them told.
void read_as_columns(std::string_view text) {
  const std::string good = describe_column({{"eth0", 0, {}}, {"eth1", 0, {}}}, 0).value();
  const auto nics = nics_of_columns({good, std::string(text), good});
  if (!nics) return;
  check(std::ranges::none_of(nics->names, [](const auto& names) { return names.empty(); }), "every column has a NIC");
  check(nics->different > 0, "what is taken means something");
}

std::string rank_ends_of_hosts() {
  std::string first, second;
  for (int rank = 0; rank < 5; ++rank)
    append(rank < 2 ? first : second, RankEnd{Introduction{.rails = rank % 3, .rail = {}}, Address{.port = 29600}});
  return input_of(first, second);
}

}  // namespace

std::vector<std::string> seeds() {
  return {input_of(end_of_host({"efa", 4, kCosts}, 2), end_of_host({"efa", 2, kCosts}, 1)),
          input_of(end_of_host({"efa", 1, kCosts}, 0), end_of_host({"tcp", 1, {}}, 32)), rank_ends_of_hosts(),
          describe_column({{"eth0", 0, {}}, {"eth1", 0, {}}}, 0).value(),
          describe_column({{"rdmap79s0", 100'000, {.pci = PciAddress{0, 79, 0, 0}, .numa = 1}}}, {}).value()};
}

}  // namespace fccl::core::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fccl::core::fuzz::read_as_hosts({data, size});
  fccl::core::fuzz::read_as_rank_ends({data, size});
  fccl::core::fuzz::read_as_columns({reinterpret_cast<const char*>(data), size});
  return 0;
}
