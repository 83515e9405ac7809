// Publishes and reads the id, or rank 0's error, in the store.
#include "bootstrap.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "errors.h"

namespace fccl::torch {
namespace {

// Rank 0's error travels in place of the id, so that no rank waits for an id that will not come.
fcclUniqueId publish_unique_id(c10d::Store& store, const std::string& key, const std::string& attempt) {
  fcclUniqueId id;
  const fcclResult_t result = fcclGetUniqueId(&id);
  if (result == fcclSuccess) {
    store.set(key, std::vector<uint8_t>(id.internal, id.internal + sizeof id.internal));
  } else {
    std::string text = fcclGetLastError(nullptr);
    if (text.size() == sizeof id.internal) text.insert(0, 1, ' ');  // by its length it would be an id
    store.set(key, text);
    check(result, attempt);
  }
  return id;
}

fcclUniqueId own_unique_id(const std::string& attempt) {
  fcclUniqueId id;
  check(fcclGetUniqueId(&id), attempt);
  return id;
}

fcclUniqueId fetch_unique_id(c10d::Store& store, const std::string& key, std::chrono::milliseconds timeout,
                             const std::string& attempt) {
  store.wait({key}, timeout);
  const std::vector<uint8_t> bytes = store.get(key);
  fcclUniqueId id;
  if (bytes.size() != sizeof id.internal) throw_reported(attempt, std::string(bytes.begin(), bytes.end()));
  std::memcpy(id.internal, bytes.data(), bytes.size());
  return id;
}

// Tells communicators apart, but not enough to join one.
std::string identity_of(const fcclUniqueId& id) {
  const std::string_view bytes(id.internal, sizeof id.internal);
  return c10::str(std::hash<std::string_view>{}(bytes));
}

}  // namespace

fcclComm_t join(c10d::Store& store, const std::string& key, const Membership& membership, fcclMemoryKind_t kind,
                std::string* identity) {
  const std::string attempt = c10::str("fccl: joining group '", membership.name, "' as rank ", membership.rank, " of ",
                                       membership.size, kind == fcclMemoryCuda ? " for CUDA memory" : "");
  const bool alone = membership.size == 1;  // and so in no need of a store, whose host may be gone
  const fcclUniqueId id = alone                  ? own_unique_id(attempt)
                          : membership.rank == 0 ? publish_unique_id(store, key, attempt)
                                                 : fetch_unique_id(store, key, membership.timeout, attempt);
  fcclConfig_t config = config_of(membership, kind);
  fcclComm_t comm = nullptr;
  check(fcclCommInitRankConfig(&comm, membership.size, id, membership.rank, &config), attempt);
  *identity = identity_of(id);
  // Every rank has read the id by now, and a later group may get the same store and name.
  if (membership.rank == 0 && !alone) store.deleteKey(key);
  return comm;
}

fcclConfig_t config_of(const Membership& membership, fcclMemoryKind_t kind) {
  fcclConfig_t config = FCCL_CONFIG_INITIALIZER;
  config.memoryKind = kind;
  config.timeoutMs = clamped(membership.timeout);
  config.initTimeoutMs = clamped(membership.timeout);
  config.commName = membership.name.c_str();
  return config;
}

int clamped(std::chrono::milliseconds timeout) {
  return static_cast<int>(std::clamp<int64_t>(timeout.count(), 1, std::numeric_limits<int>::max()));
}

}  // namespace fccl::torch
