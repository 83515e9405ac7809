// Member: one rank, as all ranks know it.
#pragma once

#include <string>
#include <vector>

namespace fccl::core {

struct Member {
  int rank = 0;
  int pid = 0;
  int host = 0;           // number of its host, which shares memory: hosts are counted as their first ranks come
  std::string host_name;  // name of the host, for messages
  std::string listener;   // name of its abstract unix listener
  // "ip:port" of the TCP listener of a leader that leads others; "" means none. A hello of many ranks has one of any rank.
  std::string address = {};
  // True if its process serves the unique id.
  bool serves = false;

  bool operator==(const Member&) const = default;
};

// The children of a host or collector in a tree, so that a process serves no more connections than these and its host's.
inline constexpr int kMostChildren = 16;
constexpr bool leads_others(int host, int hosts) { return host == 0 || host * kMostChildren + 1 < hosts; }

// Returns "rank 3 (pid 4711 on box)".
std::string describe(const Member& member);
// Names the process that serves the unique id, which listens at `root`, as the subject of a sentence.
std::string server_name(const std::vector<Member>& members, const std::string& root);

}  // namespace fccl::core
