// Member: one rank as every rank knows it.
#pragma once

#include <string>

namespace fccl {

// One rank as every rank knows it.
struct Member {
  int rank = 0;
  int pid = 0;
  std::string host;       // host_identity(): equal on ranks that share memory
  std::string host_name;  // for messages
  std::string listener;   // name of its abstract unix listener
  // "ip:port" of its TCP listener, which rank 0 alone has; "" = none.
  std::string address = {};
  // Its process serves the unique id.
  bool serves = false;

  bool operator==(const Member&) const = default;
};

// "rank 3 (pid 4711 on node-a)".
std::string describe(const Member& member);

}  // namespace fccl
