// The C interface: how communicators are made.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "c_api/derive.h"
#include "c_api/handle.h"
#include "c_api/report.h"
#include "communicator/derivation.h"
#include "communicator/group.h"
#include "device/device.h"

using fccl::core::refuse;
using fccl::core::report;

namespace {

// A rank's place in the communicator that is to be made.
struct Place {
  int nranks;
  int rank;
};

struct SplitRequest {
  int color;
  int key;
  const fcclConfig_t* config;
};

// The ids of one communicator: all ranks meet at the first one.
using Ids = std::vector<fccl::core::UniqueId>;

// No rank will meet at the ids after the first one: rank 0 ends the threads that serve them.
void release(const Ids& ids, const Place& place) {
  if (place.rank != 0) return;
  for (size_t i = 1; i < ids.size(); ++i)
    if (ids[i].key != ids[0].key)
      fccl::core::decline({ids[i], 0, 1, {}, {}}, {fcclAborted, "another id was used in its place"});
}

fccl::core::Result<std::unique_ptr<fccl::core::Communicator>> create(const Ids& ids, const Place& place,
                                                                     const fccl::core::CreateOptions& options,
                                                                     const fccl::core::CancelCheck& cancel_check = {}) {
  auto made = fccl::core::Communicator::create(ids.front(), place.rank, place.nranks, options, cancel_check);
  release(ids, place);
  return made;
}

// Makes the communicator and sets *comm.
fccl::core::Result<void> make(const Ids& ids, const Place& place, const fccl::core::CreateOptions& options, fcclComm_t* comm) {
  auto made = create(ids, place, options);
  if (!made) return fccl::core::fail(std::move(made).error());
  *comm = new fcclComm{std::move(*made)};
  return {};
}

// Hands out the handle of a communicator that a thread will make.
fccl::core::Result<void> begin(const Ids& ids, const Place& place, const fccl::core::CreateOptions& options, fcclComm_t* comm) {
  const auto begun = fccl::core::begin_making(
      [=](const fccl::core::CancelCheck& cancel_check) { return create(ids, place, options, cancel_check); });
  if (!begun) return fccl::core::fail(begun.error());
  *comm = *begun;
  return {};
}

fccl::core::Result<Ids> read_ids(std::span<const fcclUniqueId> named) {
  Ids ids;
  for (size_t i = 0; i < named.size(); ++i) {
    auto id = fccl::core::from_c(named[i]);
    if (!id && named.size() > 1)
      return fccl::core::fail(id.error().code, fmt::format("commIds[{}]: {}", i, id.error().message));
    if (!id) return fccl::core::fail(std::move(id).error());
    ids.push_back(*id);
  }
  return ids;
}

fcclResult_t init(const char* function, fcclComm_t* comm, std::span<const fcclUniqueId> named, const Place& place,
                  const fcclConfig_t* config) {
  if (comm == nullptr) return refuse(function, "comm is NULL");
  *comm = nullptr;
  if (place.nranks < 1 || place.rank < 0 || place.rank >= place.nranks)
    return refuse(function, fmt::format("rank {} of {} ranks: give 0 <= rank < nranks", place.rank, place.nranks));
  const auto ids = read_ids(named);
  if (!ids) return report(function, ids);
  auto options = fccl::core::options_of(config, nullptr);
  const bool waits = fccl::core::waits(config);
  const auto begun = options && !waits ? begin(*ids, place, *options, comm) : fccl::core::Result<void>{};
  if (!options || !begun) {
    const fccl::core::Error& why = options ? begun.error() : options.error();
    fccl::core::decline({ids->front(), place.rank, place.nranks, {}, {}}, why);
    return report(function, why);
  }
  if (!waits) return fcclInProgress;
  return fccl::core::make_or_group(function, [=, ids = *ids, options = *options] { return make(ids, place, options, comm); });
}

fcclResult_t split(const char* function, fcclComm_t comm, fcclComm_t* newcomm, const SplitRequest& request) {
  if (comm == nullptr || newcomm == nullptr) return refuse(function, "comm or newcomm is NULL");
  *newcomm = nullptr;
  if (const auto free = fccl::core::check_free(comm); !free) return report(function, free);
  if (request.color < 0 && request.color != FCCL_SPLIT_NOCOLOR)
    return refuse(function, fmt::format("color is {}: give a color >= 0 or FCCL_SPLIT_NOCOLOR", request.color));
  auto options = fccl::core::options_of(request.config, &comm->communicator->options());
  if (!options) return report(function, options);
  const auto make = [color = request.color, key = request.key, options = *options](
                        fccl::core::Communicator& parent, const fccl::core::CancelCheck& cancel_check) {
    return parent.derivation().split(color, key, options, cancel_check);
  };
  // A rank without a color gets no handle that it could ask.
  return fccl::core::derive(function, comm, newcomm, make, fccl::core::waits(request.config) || request.color < 0);
}

struct GrowRequest {
  int nranks;
  const fcclUniqueId* id;
  int rank;
  const fcclConfig_t* config;
};

// Grows as a rank of the existing communicator.
fcclResult_t grow(const char* function, fcclComm_t comm, fcclComm_t* newcomm, const GrowRequest& request) {
  *newcomm = nullptr;
  if (const auto free = fccl::core::check_free(comm); !free) return report(function, free);
  const int ranks = comm->communicator->ranks();
  if (request.rank != -1)
    return refuse(function, fmt::format("rank is {}: a rank that there is already keeps its number, {}, and gives -1",
                                        request.rank, comm->communicator->rank()));
  if (request.nranks <= ranks)
    return refuse(function, fmt::format("nRanks is {}: the communicator has {} ranks, give more", request.nranks, ranks));
  std::optional<fccl::core::UniqueId> id;
  if (request.id != nullptr) {
    const auto read = fccl::core::from_c(*request.id);
    if (!read) return report(function, read);
    id = *read;
  }
  auto options = fccl::core::options_of(request.config, &comm->communicator->options());
  if (!options) return report(function, options);
  const auto make = [id, nranks = request.nranks, options = *options](fccl::core::Communicator& parent,
                                                                      const fccl::core::CancelCheck& cancel_check) {
    return parent.derivation().grow(nranks, id, options, cancel_check);
  };
  return fccl::core::derive(function, comm, newcomm, make, fccl::core::waits(request.config));
}

// Gives each rank a GPU: the one in the list, or the one with the rank's number.
fccl::core::Result<void> choose_devices(const int* devlist, std::span<fccl::core::CreateOptions> of_ranks) {
  const auto ordinal_of = [devlist](size_t rank) { return devlist == nullptr ? static_cast<int>(rank) : devlist[rank]; };
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    for (size_t before = 0; before < rank; ++before)
      if (ordinal_of(before) == ordinal_of(rank))
        return fccl::core::fail(
            fcclInvalidUsage,
            fmt::format("devlist[{}] is {}, as devlist[{}] is: give each rank a GPU of its own. Ranks that share "
                        "one join by fcclCommInitRank, each on its own thread",
                        rank, ordinal_of(rank), before));
    auto device = fccl::core::open_device(ordinal_of(rank));
    if (!device) return fccl::core::fail(device.error().code, fmt::format("rank {}: {}", rank, device.error().message));
    of_ranks[rank].device = std::move(*device);
  }
  return {};
}

// Makes all ranks of a communicator in this process, on GPUs if this thread has one.
fccl::core::Result<void> init_all(std::span<fcclComm_t> comms, const int* devlist) {
  fcclConfig_t config = FCCL_CONFIG_INITIALIZER;
  config.memoryKind = fcclMemoryCpu;
  auto options = fccl::core::options_of(&config, nullptr);
  if (!options) return fccl::core::fail(std::move(options).error());
  std::vector of_ranks(comms.size(), *options);
  if (fccl::core::current_device() >= 0) FCCL_TRY(choose_devices(devlist, of_ranks));
  const auto id = fccl::core::open_bootstrap(options->settings);
  if (!id) return fccl::core::fail(id.error());
  const int ranks = static_cast<int>(comms.size());
  std::vector<std::function<fccl::core::Result<void>()>> tasks;
  tasks.reserve(comms.size());
  for (int rank = 0; rank < ranks; ++rank)
    tasks.emplace_back(
        [&, rank, at = static_cast<size_t>(rank)] { return make({*id}, {ranks, rank}, of_ranks[at], &comms[at]); });
  auto made = fccl::core::run_side_by_side(tasks);
  if (made) return {};
  for (fcclComm_t& comm : comms) delete std::exchange(comm, nullptr);
  return made;
}

}  // namespace

extern "C" {

fcclResult_t fcclGetUniqueId(fcclUniqueId* id) {
  if (id == nullptr) return refuse(__func__, "id is NULL");
  auto settings = fccl::core::read_settings();
  if (!settings) return report(__func__, settings);
  auto opened = fccl::core::open_bootstrap(*settings);
  if (!opened) return report(__func__, opened);
  *id = fccl::core::to_c(*opened);
  return fcclSuccess;
}

fcclResult_t fcclCommInitRank(fcclComm_t* comm, int nranks, fcclUniqueId id, int rank) {
  return init(__func__, comm, {&id, 1}, {nranks, rank}, nullptr);
}

fcclResult_t fcclCommInitRankConfig(fcclComm_t* comm, int nranks, fcclUniqueId id, int rank, fcclConfig_t* config) {
  return init(__func__, comm, {&id, 1}, {nranks, rank}, config);
}

fcclResult_t fcclCommInitRankScalable(fcclComm_t* newcomm, int nranks, int myrank, int count, fcclUniqueId* ids,
                                      fcclConfig_t* config) {
  if (count < 1 || ids == nullptr)
    return refuse(__func__, fmt::format("nId is {}, commIds {}: give at least one id", count, ids == nullptr ? "NULL" : "set"));
  return init(__func__, newcomm, {ids, static_cast<size_t>(count)}, {nranks, myrank}, config);
}

fcclResult_t fcclCommInitAll(fcclComm_t* comms, int ndev, const int* devlist) {
  if (comms == nullptr) return refuse(__func__, "comms is NULL");
  if (ndev < 1) return refuse(__func__, fmt::format("ndev is {}: give a number of ranks >= 1", ndev));
  const std::span all(comms, static_cast<size_t>(ndev));
  std::ranges::fill(all, nullptr);
  return report(__func__, init_all(all, devlist));
}

fcclResult_t fcclCommSplit(fcclComm_t comm, int color, int key, fcclComm_t* newcomm, fcclConfig_t* config) {
  return split(__func__, comm, newcomm, {color, key, config});
}

fcclResult_t fcclCommGetUniqueId(fcclComm_t comm, fcclUniqueId* id) {
  if (comm == nullptr || id == nullptr) return refuse(__func__, "comm or uniqueId is NULL");
  if (const auto free = fccl::core::check_free(comm); !free) return report(__func__, free);
  const auto opened = comm->communicator->derivation().invite();
  if (opened) *id = fccl::core::to_c(*opened);
  return report(__func__, opened);
}

fcclResult_t fcclCommGrow(fcclComm_t comm, int nranks, const fcclUniqueId* id, int rank, fcclComm_t* newcomm,
                          fcclConfig_t* config) {
  if (newcomm == nullptr) return refuse(__func__, "newcomm is NULL");
  if (comm != nullptr) return grow(__func__, comm, newcomm, {nranks, id, rank, config});
  *newcomm = nullptr;
  if (id == nullptr)
    return refuse(__func__,
                  "comm and uniqueId are NULL: a rank of the communicator gives comm, a new one gives the id that "
                  "fcclCommGetUniqueId made");
  return init(__func__, newcomm, {id, 1}, {nranks, rank}, config);
}

}  // extern "C"
