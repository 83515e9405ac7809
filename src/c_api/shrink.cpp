// The C interface: communicators without some of their ranks, and the dead ranks.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "c_api/derive.h"
#include "c_api/handle.h"
#include "c_api/report.h"
#include "communicator/derivation.h"
#include "operations/host_function.h"

using fccl::core::Communicator;
using fccl::core::refuse;
using fccl::core::report;
using fccl::core::ShrinkAs;

namespace {

// Says why fcclCommShrink refuses a list of ranks; "" if it accepts it.
std::string objection(const std::vector<int>& excluded, const Communicator& communicator) {
  const int ranks = communicator.ranks();
  for (size_t i = 0; i < excluded.size(); ++i) {
    const int rank = excluded[i];
    if (rank < 0 || rank >= ranks)
      return fmt::format("excludeRanksList[{}] is {}: the communicator has ranks 0 to {}", i, rank, ranks - 1);
    if (rank == communicator.rank())
      return fmt::format("excludeRanksList[{}] is {}, the calling rank itself: only those that go on call", i, rank);
    const auto before = std::find(excluded.begin(), excluded.begin() + static_cast<ptrdiff_t>(i), rank);
    if (before != excluded.begin() + static_cast<ptrdiff_t>(i))
      return fmt::format("excludeRanksList[{}] is {}, as excludeRanksList[{}] is: give each rank once", i, rank,
                         before - excluded.begin());
  }
  return "";
}

}  // namespace

extern "C" {

fcclResult_t fcclCommShrink(fcclComm_t comm, int* ranks, int count, fcclComm_t* newcomm, fcclConfig_t* config, int flags) {
  if (comm == nullptr || newcomm == nullptr) return refuse(__func__, "comm or newcomm is NULL");
  *newcomm = nullptr;
  if (const auto free = fccl::core::check_free(comm); !free) return report(__func__, free);
  if (fccl::core::is_in_host_function()) return fccl::core::refuse_in_host_function(__func__);
  if (count < 0 || (count > 0 && ranks == nullptr))
    return refuse(__func__, fmt::format("excludeRanksCount is {}, excludeRanksList {}: give as many ranks as the count says",
                                        count, ranks == nullptr ? "NULL" : "set"));
  if (flags != FCCL_SHRINK_DEFAULT && flags != FCCL_SHRINK_ABORT)
    return refuse(__func__, fmt::format("shrinkFlags is {}: give FCCL_SHRINK_DEFAULT or FCCL_SHRINK_ABORT", flags));
  const std::vector<int> excluded(ranks, ranks + count);
  if (std::string why = objection(excluded, *comm->communicator); !why.empty()) return refuse(__func__, std::move(why));
  auto options = fccl::core::options_of(config, &comm->communicator->options());
  if (!options) return report(__func__, options);
  const auto as = flags == FCCL_SHRINK_ABORT ? ShrinkAs::ended : ShrinkAs::healthy;
  const auto make = [=, options = *options](Communicator& parent, const fccl::core::CancelCheck& cancel_check) {
    return parent.derivation().shrink(excluded, as, options, cancel_check);
  };
  return fccl::core::derive(__func__, comm, newcomm, make, fccl::core::waits(config));
}

fcclResult_t fcclCommGetDeadRanks(fcclComm_t comm, int* ranks, int* count) {
  if (comm == nullptr || count == nullptr) return refuse(__func__, "comm or count is NULL");
  if (const auto made = fccl::core::check_made(comm); !made) return report(__func__, made);
  if (const auto own = comm->communicator->check_own(); !own) return report(__func__, own);
  const int room = ranks == nullptr ? 0 : *count;
  if (room < 0) return refuse(__func__, fmt::format("*count is {}: give the number of ranks that there is room for", room));
  const std::vector<int> dead = comm->communicator->dead_ranks();
  *count = static_cast<int>(dead.size());
  std::copy_n(dead.begin(), std::min(dead.size(), static_cast<size_t>(room)), ranks);
  return fcclSuccess;
}

}  // extern "C"
