// Transports of one process that reach each other over the loopback interface.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "wire/plugin.h"

namespace fccl::core {

// Through the plug-in itself, as libfccl gets them.
inline Result<std::vector<std::unique_ptr<Transport>>> open_loopback(int processes, int rails) {
  const TransportRequest request{.provider = "tcp", .nics = std::vector<std::string>(static_cast<size_t>(rails), "lo")};
  std::vector<std::unique_ptr<Transport>> transports;
  for (int process = 0; process < processes; ++process) {
    FCCL_TRY_ASSIGN(auto opened, open_transport(FCCL_OFI_LIBRARY, request));
    transports.push_back(std::move(opened));
  }
  return transports;
}

}  // namespace fccl::core
