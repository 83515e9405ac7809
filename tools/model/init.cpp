// Makes the messages of an init, with names and addresses of a usual length.
#include "model/init.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "bootstrap/messages.h"
#include "channels/handshake.h"
#include "creation/create_options.h"
#include "creation/network.h"
#include "host_link/leader_tree.h"
#include "host_link/link_messages.h"
#include "plan/entry_rounds.h"

namespace fccl::core::model {
namespace {

// docs/explanation/init.md: libfabric, once for each process.
constexpr double kNetworkLibrarySeconds = 0.3;
// The plug-in puts so many bytes before a rail's name in libfabric (plugins/ofi/address.cpp).
constexpr std::size_t kHeaderOfName = 32;
// The messages of a handshake, which each end takes or sends.
constexpr int kOfHandshake = 4;

double sealed(const std::string& message) { return static_cast<double>(sizeof(uint32_t) + message.size() + sizeof(Digest)); }

constexpr double kHandshakeBytes = 2 * (kPreambleBytes + kProofBytes);

bool has_many_ranks(const InitShape& shape) { return shape.ranks() > JoinRequest{}.most_direct; }

// Returns how many hosts have a collector: all but the root's, if the ranks are many.
int collectors_of(const InitShape& shape) { return has_many_ranks(shape) ? shape.hosts - 1 : 0; }

// Returns the tree of leaders; only leaders of many ranks have addresses.
LeaderTree tree_of(const InitShape& shape) {
  return {shape.hosts, has_many_ranks(shape) ? kMostChildren : std::max(1, shape.hosts - 1)};
}

Hello hello_of(const InitShape& shape, int rank) {
  const int host = rank / shape.ranks_per_host;
  const std::string name = fmt::format("ip-10-0-{:02}-{:03}", host / 256, host % 256);
  return {.member = {.rank = rank,
                     .pid = 10'000 + rank,
                     .host = host,
                     .host_name = name,
                     .listener = "0002f",
                     .address = rank == 0 || has_many_ranks(shape) ? "10.0.12.34:45678" : "",
                     .serves = rank == 0},
          .nranks = shape.ranks(),
          .agreement = CreateOptions{}.agreement(),
          .host = "01234567-89ab-cdef-0123-456789abcdef " + name + " ipc:[4026531839] pid:[4026531836] net:[4026531840]"};
}

// Returns what the collector of a host says of its ranks.
Batch batch_of_host(const InitShape& shape) {
  Batch batch{{}, Collects{"10.0.12.34:45678"}};
  for (int rank = shape.ranks() - shape.ranks_per_host; rank < shape.ranks(); ++rank)
    batch.words.push_back({rank, hello_of(shape, rank), !batch.words.empty()});
  return batch;
}

// Returns how many edges of the tree lie between the root, which is the 0th, and a collector.
int level_of(int collector) {
  int level = 0;
  for (; collector > 0; ++level) collector = (collector - 1) / kMostChildren;
  return level;
}

double roster_bytes(const InitShape& shape) {
  std::map<int, Hello> hellos;
  for (int rank = 0; rank < shape.ranks(); ++rank) hellos.emplace(rank, hello_of(shape, rank));
  return sealed(encode(roster_of(hellos)));
}

// Returns what a lane between so many members says of itself.
Introduction introduction_of(const InitShape& shape, int members, std::size_t payload_bytes) {
  Introduction introduction{.members = members,
                            .window = 8,
                            .slot_bytes = 1 << 20,
                            .write_bytes = 1 << 20,
                            .payload_bytes = payload_bytes,
                            .immediate_bits = 32,
                            .rails = shape.rails_of_rank};
  for (int rail = 0; rail < shape.rails_of_rank; ++rail)
    introduction.rail[static_cast<std::size_t>(rail)].address_bytes = static_cast<uint32_t>(kHeaderOfName + shape.name_bytes);
  return introduction;
}

// Returns what a leader tells of the ranks of its host, all of which have a column.
std::string blob_of_host(const InitShape& shape) {
  std::string blob;
  for (int rank = 0; rank < shape.ranks_per_host; ++rank) {
    const Introduction lane = introduction_of(shape, shape.hosts, plan::payload_bytes_of(shape.hosts));
    append(blob, RankEnd{introduction_of(shape, shape.ranks(), plan::kContentBytes),
                         {},
                         ColumnEnd{{shape.provider, shape.ranks_per_host * shape.rails_of_rank, {}}, {lane, lane}}});
  }
  return blob;
}

// Returns the bytes between all leaders and their parents, who exchange these blobs and then empty ones.
double exchanged_bytes(const InitShape& shape) {
  std::map<std::size_t, int> subtrees;  // how many there are of each size
  const LeaderTree tree = tree_of(shape);
  for (int host = 1; host < shape.hosts; ++host) ++subtrees[tree.subtree_of(host).size()];
  const auto given = [](std::size_t hosts, const std::string& blob) {
    return sealed(encode_link(Blobs{std::vector<std::string>(hosts, blob)}));
  };
  double bytes = 0;
  for (const std::string& blob : {blob_of_host(shape), std::string()}) {
    const double of_all = given(static_cast<std::size_t>(shape.hosts), blob);
    for (const auto& [hosts, count] : subtrees) bytes += count * (of_all + given(hosts, blob));
  }
  return bytes;
}

}  // namespace

// Each rank says hello, hears the roster and says farewell. Each collector of many ranks does so, too, with a batch of hellos;
// one that the root sends on says the batch twice. Each host's leader hands out the segment; each but the top tells its parent
// twice and hears twice what leaders give.
InitTraffic init_traffic(const InitShape& shape) {
  const int ranks = shape.ranks(), others = shape.hosts - 1, collectors = collectors_of(shape);
  const int sent_on = std::max(0, collectors - kMostChildren), handed_out = shape.hosts * (shape.ranks_per_host - 1);
  // By TCP; the other ranks read it from memory.
  const int rosters = collectors > 0 ? collectors : ranks - shape.ranks_per_host;
  InitTraffic traffic;
  traffic.messages = 3 * (ranks + collectors) + 2 * sent_on + handed_out + 4 * others;
  for (int rank = 0; rank < ranks; ++rank) traffic.bytes += sealed(encode(hello_of(shape, rank)));
  const double batch = sealed(encode(batch_of_host(shape)));
  for (int collector = 1; collector <= collectors; ++collector) traffic.bytes += level_of(collector) * batch;
  const PlaceInTree place{"10.0.12.34:45678", 8, "rank 8 (pid 10008 on ip-10-0-00-001)"};
  traffic.bytes += sent_on * (batch + sealed(encode(place))) + (ranks + collectors) * sealed(encode(Farewell{})) +
                   (ranks + collectors - rosters) * sealed(encode(SharedRoster{1})) + rosters * roster_bytes(shape) +
                   handed_out * sealed({}) + (ranks + collectors + sent_on + handed_out + others) * kHandshakeBytes;
  traffic.bytes += exchanged_bytes(shape);
  return traffic;
}

double init_seconds(const InitShape& shape, const CostConstants& bootstrap, const CostConstants& wire) {
  const int ranks = shape.ranks(), others = shape.hosts - 1, collectors = collectors_of(shape);
  const auto talk = [&](int in_turn, double messages, double bytes) {
    return in_turn * bootstrap.latency + messages * bootstrap.message + bytes * bootstrap.wire_byte;
  };
  // A connection takes a way to and fro, and so do the preambles and the proofs.
  constexpr int kToMeet = 6;
  double roster = talk(kToMeet + 2, ranks * (kOfHandshake + 2), (ranks - shape.ranks_per_host) * roster_bytes(shape));
  if (collectors > 0) {
    // A host meets its collector, and all collectors meet the root; then each level gathers hellos and hands out the roster.
    const int children = std::min(collectors, kMostChildren);
    roster = talk(kToMeet + 2, shape.ranks_per_host * (kOfHandshake + 2), 0) + talk(kToMeet, collectors * kOfHandshake, 0) +
             level_of(collectors) * talk(2, children * 2, children * roster_bytes(shape));
  }
  const double segment = talk(kToMeet + 1, (shape.ranks_per_host - 1) * (kOfHandshake + 1), 0);
  if (others == 0) return roster + segment;
  // Each level of the tree waits for the next one.
  const auto most = static_cast<int>(tree_of(shape).children_of(LeaderTree::kTop).size());
  const int levels = collectors > 0 ? level_of(others) : 1;
  const double network = levels * talk(kToMeet, most * kOfHandshake, 0) + kNetworkLibrarySeconds;
  const double hosts = levels * talk(4, most * 4, most * exchanged_bytes(shape) / others);
  const double barrier = plan::EntryRounds(shape.hosts, false).seconds(wire);
  return roster + segment + network + hosts + barrier;
}

}  // namespace fccl::core::model
