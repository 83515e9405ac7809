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

std::string end_of(const NetworkEnd& network, int rails, bool has_column) {
  const Introduction lane{.rails = rails, .rail = {}};
  RankEnd end{lane, Address{.port = 29600}};
  if (has_column) end.column = ColumnEnd{network, {lane, lane}};
  std::string bytes;
  append(bytes, end);
  return bytes;
}

// A length of 2 bytes, so much of the first host, and the rest of the second.
std::string input_of(const std::string& first, const std::string& second) {
  const auto size = static_cast<uint16_t>(first.size());
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + first + second;
}

void check_rails(const Introduction& each) {
  check(each.rails >= 0 && each.rails <= Introduction::kMostRails, "an introduction has no more rails than there is room");
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
      for (const Introduction& each : introductions) check_rails(each);
    }
    check(network->transfers.size() == 5 && network->meeting_places.size() == 5, "every rank is introduced");
    for (const Introduction& each : network->transfers) check_rails(each);
    for (const Address& each : network->meeting_places) check(each.port > 0, "a rank can be met");
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

std::string hosts_of(const NetworkEnd& first, int rails_there, const NetworkEnd& second, int rails) {
  return input_of(end_of(first, rails_there, true) + end_of(first, rails_there, true),
                  end_of(second, rails, true) + end_of(second, rails, true) + end_of(second, rails, false));
}

}  // namespace

std::vector<std::string> seeds() {
  return {hosts_of({"efa", 4, kCosts}, 2, {"efa", 2, kCosts}, 1), hosts_of({"efa", 1, kCosts}, 0, {"tcp", 1, {}}, 32),
          describe_column({{"eth0", 0, {}}, {"eth1", 0, {}}}, 0).value(),
          describe_column({{"rdmap79s0", 100'000, {.pci = PciAddress{0, 79, 0, 0}, .numa = 1}}}, {}).value()};
}

}  // namespace fccl::core::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fccl::core::fuzz::read_as_hosts({data, size});
  fccl::core::fuzz::read_as_columns({reinterpret_cast<const char*>(data), size});
  return 0;
}
