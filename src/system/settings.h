// Settings: everything FCCL takes from the environment, read at one place.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "base/result.h"

namespace fccl {

// The values of the FCCL_* variables. A plain value; each communicator keeps the one it was made with.
struct Settings {
  std::chrono::milliseconds timeout{600'000};       // FCCL_TIMEOUT, seconds
  std::chrono::milliseconds init_timeout{300'000};  // FCCL_INIT_TIMEOUT, seconds
  size_t mailbox_bytes = 4096;                      // FCCL_MAILBOX_BYTES: largest payload that goes by mailbox
  size_t slot_bytes = 256 * 1024;                   // FCCL_SLOT_BYTES: largest slice that goes through a ring
  std::string host_id;                              // FCCL_HOST_ID: replaces the found identity of this host
  std::string interface_name;                       // FCCL_SOCKET_IFNAME: interface of the bootstrap
  std::string log_level = "warn";                   // FCCL_LOG

  // The lines that must be equal on all ranks, since they decide which path a message takes.
  std::string agreement() const;
};

// Reads the environment. Error: fcclInvalidUsage, naming the variable, its value and what it may be.
Result<Settings> read_settings();

}  // namespace fccl
