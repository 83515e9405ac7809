// The C interface: metrics.
#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "c_api/handle.h"
#include "c_api/report.h"
#include "c_api/structure.h"
#include "metrics/statistics.h"
#include "metrics_server/text.h"

namespace fccl::core {
namespace {

Result<void> check_kind(fcclColl_t collective, int path, int size) {
  if (static_cast<unsigned>(collective) >= fcclNumColls)
    return fail(fcclInvalidArgument, fmt::format("{} is not an fcclColl_t", static_cast<int>(collective)));
  if (path < 0 || std::cmp_greater_equal(path, metrics::kPaths))
    return fail(fcclInvalidArgument, fmt::format("there is no path {}; there are {}", path, metrics::kPaths));
  if (size < 0 || std::cmp_greater_equal(size, metrics::kSizes))
    return fail(fcclInvalidArgument, fmt::format("there is no class {} of sizes; there are {}", size, metrics::kSizes));
  return {};
}

Result<std::string> text_of_metrics(bool of_host) {
  const uint64_t now_ms = to_ms(Clock::now());
  if (!of_host) {
    const metrics::PageCopy own = metrics::PageCopy::own();
    return metrics::text_of({&own, 1}, now_ms);
  }
  FCCL_TRY_ASSIGN(const auto pages, metrics::pages_from(::getpid()));
  return metrics::text_of(pages, now_ms);
}

}  // namespace
}  // namespace fccl::core

using fccl::core::refuse;
using fccl::core::report;

extern "C" {

const char* fcclMetricsPathName(int path) {
  if (path < 0 || std::cmp_greater_equal(path, fccl::core::metrics::kPaths)) return nullptr;
  return fccl::core::metrics::kPathNames[static_cast<size_t>(path)];
}

unsigned long long fcclMetricsLargestSize(int size_class) {
  if (size_class < 0 || std::cmp_greater_equal(size_class, fccl::core::metrics::kSizes)) return 0;
  if (std::cmp_equal(size_class, fccl::core::metrics::kLargest.size())) return ~0ULL;
  return fccl::core::metrics::kLargest[static_cast<size_t>(size_class)];
}

fcclResult_t fcclCommGetCallMetrics(fcclComm_t comm, fcclColl_t coll, int path, int size_class, fcclCallMetrics_t* metrics) {
  if (comm == nullptr || metrics == nullptr) return refuse(__func__, "comm or metrics is NULL");
  if (const auto made = fccl::core::check_made(comm); !made) return report(__func__, made);
  if (const auto known = fccl::core::check_kind(coll, path, size_class); !known) return report(__func__, known);
  const fccl::core::Statistics& statistics = comm->communicator->statistics();
  return fccl::core::give(__func__, statistics.calls_of(coll, static_cast<size_t>(path), static_cast<size_t>(size_class)),
                          metrics);
}

fcclResult_t fcclGetProcessCallMetrics(fcclColl_t coll, int path, int size_class, fcclCallMetrics_t* metrics) {
  if (metrics == nullptr) return refuse(__func__, "metrics is NULL");
  if (const auto known = fccl::core::check_kind(coll, path, size_class); !known) return report(__func__, known);
  return fccl::core::give(
      __func__, fccl::core::metrics::calls_of_process(coll, static_cast<size_t>(path), static_cast<size_t>(size_class)),
      metrics);
}

fcclResult_t fcclCommGetWaited(fcclComm_t comm, int peer, double* seconds) {
  if (comm == nullptr || seconds == nullptr) return refuse(__func__, "comm or seconds is NULL");
  if (const auto made = fccl::core::check_made(comm); !made) return report(__func__, made);
  if (peer < 0 || peer >= comm->communicator->ranks())
    return refuse(__func__, fmt::format("peer {} is not a rank of a communicator of {}", peer, comm->communicator->ranks()));
  *seconds = comm->communicator->statistics().waited_for(peer);
  return fcclSuccess;
}

fcclResult_t fcclCommGetCallInFlight(fcclComm_t comm, fcclCallInFlight_t* call) {
  if (comm == nullptr || call == nullptr) return refuse(__func__, "comm or call is NULL");
  if (const auto made = fccl::core::check_made(comm); !made) return report(__func__, made);
  return fccl::core::give(__func__, comm->communicator->statistics().oldest_in_flight(), call);
}

fcclResult_t fcclGetRailMetrics(int rail, fcclRailMetrics_t* metrics) {
  if (metrics == nullptr) return refuse(__func__, "metrics is NULL");
  if (rail < 0 || rail >= fccl::core::metrics::kRails)
    return refuse(__func__, fmt::format("there is no rail {}; {} are counted", rail, fccl::core::metrics::kRails));
  const fccl::core::metrics::RailPart& part = fccl::core::metrics::page_of_process().rails[static_cast<size_t>(rail)];
  fcclRailMetrics_t known{};
  known.bytes = fccl::core::metrics::value_of(part.bytes);
  known.messages = fccl::core::metrics::value_of(part.messages);
  known.retries = fccl::core::metrics::value_of(part.retries);
  return fccl::core::give(__func__, known, metrics);
}

fcclResult_t fcclGetMetricsText(int host, char* buffer, size_t capacity, size_t* length) {
  if (length == nullptr || (buffer == nullptr && capacity != 0)) return refuse(__func__, "length or buffer is NULL");
  const auto text = fccl::core::text_of_metrics(host != 0);
  if (!text) return report(__func__, text);
  *length = text->size();
  if (capacity == 0) return fcclSuccess;
  const size_t kept = std::min(text->size(), capacity - 1);
  std::memcpy(buffer, text->data(), kept);
  buffer[kept] = 0;
  return fcclSuccess;
}

}  // extern "C"
