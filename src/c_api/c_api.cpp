// The C interface: communicators, operators, counters, errors.
#include "c_api/c_api.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "communicator/group.h"
#include "communicator/statistics.h"
#include "communicator/worker.h"
#include "device/device.h"
#include "kernels/reduce.h"
#include "system/log.h"

namespace fccl {
namespace {

// This thread's last error, for fcclGetLastError(NULL).
std::string& last_error() {
  thread_local std::string text;
  return text;
}

// Takes a field of the config unless the user left it undefined.
Result<void> read_timeout(const char* field, int value, std::chrono::milliseconds& into) {
  if (value == FCCL_CONFIG_UNDEF_INT) return {};
  if (value <= 0) return fail(fcclInvalidArgument, fmt::format("config.{} is {}: give milliseconds > 0", field, value));
  into = std::chrono::milliseconds(value);
  return {};
}

// Undefined is the parent's kind, and without one Auto: CUDA if the calling thread has a GPU.
Result<CreateOptions> with_memory(int kind, const CreateOptions* parent, CreateOptions options) {
  if (parent != nullptr && kind != fcclMemoryCpu && (parent->device || kind != fcclMemoryCuda)) return options;
  const int current = kind == fcclMemoryCpu ? -1 : current_device();
  options.device = nullptr;
  if (current < 0 && kind != fcclMemoryCuda) return options;
  // As in the runtime, a thread that has chosen no GPU has chosen the first.
  auto device = open_device(std::max(current, 0));
  if (!device) return fail(std::move(device).error());
  options.device = std::move(*device);
  return options;
}

}  // namespace

fcclResult_t report(const char* function, const Error& error) {
  last_error() = *function == 0 ? error.message : fmt::format("{}: {}", function, error.message);
  log(LogLevel::debug, last_error());
  if (Group::is_open() && *function != 0) Group::of_thread().refuse({error.code, last_error()});
  return error.code;
}

Result<CreateOptions> options_of(const fcclConfig_t* config, const CreateOptions* parent) {
  CreateOptions options;
  if (parent != nullptr) {
    options = *parent;
  } else {
    auto settings = read_settings();
    if (!settings) return fail(std::move(settings).error());
    options.settings = std::move(*settings);
  }
  if (config == nullptr) return with_memory(FCCL_CONFIG_UNDEF_INT, parent, std::move(options));
  if (config->magic != FCCL_CONFIG_MAGIC || config->size < sizeof(fcclConfig_t))
    return fail(fcclInvalidArgument, "config was not initialised: start from FCCL_CONFIG_INITIALIZER");
  if (config->blocking == 0) return fail(fcclNotImplemented, "config.blocking = 0 is not implemented yet");
  if (config->memoryKind != FCCL_CONFIG_UNDEF_INT && (config->memoryKind < 0 || config->memoryKind > fcclMemoryCuda))
    return fail(fcclInvalidArgument, fmt::format("config.memoryKind is {}: give a fcclMemoryKind_t", config->memoryKind));
  FCCL_TRY(read_timeout("timeoutMs", config->timeoutMs, options.settings.timeout));
  FCCL_TRY(read_timeout("initTimeoutMs", config->initTimeoutMs, options.settings.init_timeout));
  if (config->commName != nullptr) options.name = std::string(config->commName).substr(0, 31);
  return with_memory(config->memoryKind, parent, std::move(options));
}

}  // namespace fccl

using fccl::Group;
using fccl::refuse;
using fccl::report;

namespace {

// A rank's place in the communicator to be.
struct Place {
  int nranks;
  int rank;
};

struct SplitRequest {
  int color;
  int key;
  const fcclConfig_t* config;
};

// Makes the communicator and puts it there.
fccl::Result<void> make(const fccl::UniqueId& id, const Place& place, const fccl::CreateOptions& options, fcclComm_t* comm) {
  auto made = fccl::Communicator::create(id, place.rank, place.nranks, options);
  if (!made) return fccl::fail(std::move(made).error());
  *comm = new fcclComm{std::move(*made)};
  return {};
}

fcclResult_t init(const char* function, fcclComm_t* comm, const fcclUniqueId& named, const Place& place,
                  const fcclConfig_t* config) {
  if (comm == nullptr) return refuse(function, "comm is NULL");
  *comm = nullptr;
  if (place.nranks < 1 || place.rank < 0 || place.rank >= place.nranks)
    return refuse(function, fmt::format("rank {} of {} ranks: give 0 <= rank < nranks", place.rank, place.nranks));
  auto unique_id = fccl::from_c(named);
  if (!unique_id) return report(function, unique_id);
  auto options = fccl::options_of(config, nullptr);
  if (!options) {
    fccl::decline({*unique_id, place.rank, place.nranks, {}, {}}, options.error());
    return report(function, options);
  }
  if (!Group::is_open()) return report(function, make(*unique_id, place, *options, comm));
  Group::of_thread().add([=, id = *unique_id, options = *options] { return make(id, place, options, comm); });
  return fcclSuccess;
}

fcclResult_t split(const char* function, fcclComm_t comm, fcclComm_t* newcomm, const SplitRequest& request) {
  if (comm == nullptr || newcomm == nullptr) return refuse(function, "comm or newcomm is NULL");
  *newcomm = nullptr;
  if (request.color < 0 && request.color != FCCL_SPLIT_NOCOLOR)
    return refuse(function, fmt::format("color is {}: give a color >= 0 or FCCL_SPLIT_NOCOLOR", request.color));
  auto options = fccl::options_of(request.config, &comm->communicator->options());
  if (!options) return report(function, options);
  const auto make_part = [=, color = request.color, key = request.key, options = *options]() -> fccl::Result<void> {
    auto made = comm->communicator->split(color, key, options);
    if (!made) return fccl::fail(std::move(made).error());
    if (*made) *newcomm = new fcclComm{std::move(*made)};
    return {};
  };
  if (!Group::is_open()) return report(function, make_part());
  Group::of_thread().add(make_part);
  return fcclSuccess;
}

// All ranks of a communicator in this process.
fccl::Result<void> init_all(std::span<fcclComm_t> comms) {
  // Several ranks of one thread need groups, which calls on CUDA memory cannot be in yet.
  fcclConfig_t config = FCCL_CONFIG_INITIALIZER;
  config.memoryKind = fcclMemoryCpu;
  auto options = fccl::options_of(&config, nullptr);
  if (!options) return fccl::fail(std::move(options).error());
  const auto id = fccl::open_bootstrap(options->settings.interface_name);
  if (!id) return fccl::fail(id.error());
  const int ranks = static_cast<int>(comms.size());
  std::vector<std::function<fccl::Result<void>()>> tasks;
  for (int rank = 0; rank < ranks; ++rank)
    tasks.emplace_back([&, rank] { return make(*id, {ranks, rank}, *options, &comms[static_cast<size_t>(rank)]); });
  auto made = fccl::run_side_by_side(tasks);
  if (made) return {};
  for (fcclComm_t& comm : comms) delete std::exchange(comm, nullptr);
  return made;
}

}  // namespace

extern "C" {

fcclResult_t fcclGetVersion(int* version) {
  if (version == nullptr) return refuse(__func__, "version is NULL");
  *version = FCCL_VERSION_CODE;
  return fcclSuccess;
}

const char* fcclGetErrorString(fcclResult_t result) {
  switch (result) {
    case fcclSuccess:
      return "no error";
    case fcclUnhandledCudaError:
      return "a CUDA call failed";
    case fcclSystemError:
      return "the operating system refused";
    case fcclInternalError:
      return "a defect of FCCL";
    case fcclInvalidArgument:
      return "an argument is wrong";
    case fcclInvalidUsage:
      return "the ranks disagree, a setting is wrong, or the call is not allowed now";
    case fcclRemoteError:
      return "a peer died, left or failed";
    case fcclInProgress:
      return "in progress";
    case fcclTimeout:
      return "a wait reached its deadline";
    case fcclNotImplemented:
      return "not implemented yet";
    case fcclAborted:
      return "aborted";
    case fcclNumResults:
      break;
  }
  return "unknown result code";
}

const char* fcclGetLastError(fcclComm_t comm) {
  return comm == nullptr ? fccl::last_error().c_str() : comm->communicator->last_error();
}

fcclResult_t fcclGetUniqueId(fcclUniqueId* id) {
  if (id == nullptr) return refuse(__func__, "id is NULL");
  auto settings = fccl::read_settings();
  if (!settings) return report(__func__, settings);
  auto opened = fccl::open_bootstrap(settings->interface_name);
  if (!opened) return report(__func__, opened);
  *id = fccl::to_c(*opened);
  return fcclSuccess;
}

fcclResult_t fcclCommInitRank(fcclComm_t* comm, int nranks, fcclUniqueId id, int rank) {
  return init(__func__, comm, id, {nranks, rank}, nullptr);
}

fcclResult_t fcclCommInitRankConfig(fcclComm_t* comm, int nranks, fcclUniqueId id, int rank, fcclConfig_t* config) {
  return init(__func__, comm, id, {nranks, rank}, config);
}

fcclResult_t fcclCommInitAll(fcclComm_t* comms, int ndev, const int* devlist) {
  static_cast<void>(devlist);
  if (comms == nullptr) return refuse(__func__, "comms is NULL");
  if (ndev < 1) return refuse(__func__, fmt::format("ndev is {}: give a number of ranks >= 1", ndev));
  const std::span all(comms, static_cast<size_t>(ndev));
  std::ranges::fill(all, nullptr);
  return report(__func__, init_all(all));
}

fcclResult_t fcclCommSplit(fcclComm_t comm, int color, int key, fcclComm_t* newcomm, fcclConfig_t* config) {
  return split(__func__, comm, newcomm, {color, key, config});
}

fcclResult_t fcclCommFinalize(fcclComm_t comm) {
  if (comm == nullptr) return refuse(__func__, "comm is NULL");
  if (fccl::Worker::is_this_thread()) return fccl::refuse_in_host_function(__func__);
  return report(__func__, comm->communicator->finalize());
}

fcclResult_t fcclCommDestroy(fcclComm_t comm) {
  if (comm == nullptr) return fcclSuccess;
  if (fccl::Worker::is_this_thread()) return fccl::refuse_in_host_function(__func__);
  delete comm;
  return fcclSuccess;
}

fcclResult_t fcclCommRevoke(fcclComm_t comm, int flags) {
  if (comm == nullptr) return refuse(__func__, "comm is NULL");
  if (flags != 0) return refuse(__func__, fmt::format("flags is {}: give 0", flags));
  return report(__func__, comm->communicator->revoke());
}

fcclResult_t fcclCommAbort(fcclComm_t comm) {
  if (comm == nullptr) return fcclSuccess;
  if (fccl::Worker::is_this_thread()) return fccl::refuse_in_host_function(__func__);
  comm->communicator->abort();
  delete comm;
  return fcclSuccess;
}

fcclResult_t fcclCommGetAsyncError(fcclComm_t comm, fcclResult_t* asyncError) {
  if (comm == nullptr || asyncError == nullptr) return refuse(__func__, "comm or asyncError is NULL");
  if (const auto own = comm->communicator->check_own(); !own) return report(__func__, own);
  const auto error = comm->communicator->async_error();
  *asyncError = error ? error->code : fcclSuccess;
  return fcclSuccess;
}

fcclResult_t fcclCommSetTimeout(fcclComm_t comm, int timeoutMs) {
  if (comm == nullptr) return refuse(__func__, "comm is NULL");
  if (timeoutMs <= 0) return refuse(__func__, fmt::format("timeoutMs is {}: give milliseconds > 0", timeoutMs));
  comm->communicator->set_timeout(std::chrono::milliseconds(timeoutMs));
  return fcclSuccess;
}

fcclResult_t fcclCommCount(const fcclComm_t comm, int* count) {
  if (comm == nullptr || count == nullptr) return refuse(__func__, "comm or count is NULL");
  *count = comm->communicator->ranks();
  return fcclSuccess;
}

fcclResult_t fcclCommUserRank(const fcclComm_t comm, int* rank) {
  if (comm == nullptr || rank == nullptr) return refuse(__func__, "comm or rank is NULL");
  *rank = comm->communicator->rank();
  return fcclSuccess;
}

fcclResult_t fcclCommGetHosts(const fcclComm_t comm, fcclHosts_t* hosts) {
  if (comm == nullptr || hosts == nullptr) return refuse(__func__, "comm or hosts is NULL");
  *hosts = comm->communicator->hosts();
  return fcclSuccess;
}

fcclResult_t fcclCommCuDevice(const fcclComm_t comm, int* device) {
  if (comm == nullptr || device == nullptr) return refuse(__func__, "comm or device is NULL");
  if (comm->communicator->device() == nullptr)
    return report(__func__, {fcclInvalidUsage, "this is a communicator of CPU memory: it has no CUDA device"});
  *device = comm->communicator->device()->limits().ordinal;
  return fcclSuccess;
}

fcclResult_t fcclRedOpCreatePreMulSum(fcclRedOp_t* op, void* scalar, fcclDataType_t datatype, fcclScalarResidence_t residence,
                                      fcclComm_t comm) {
  if (op == nullptr || scalar == nullptr || comm == nullptr) return refuse(__func__, "op, scalar or comm is NULL");
  const bool is_on_device = residence == fcclScalarDevice;
  if (!is_on_device && residence != fcclScalarHostImmediate)
    return refuse(__func__, fmt::format("residence {} is no fcclScalarResidence_t", static_cast<int>(residence)));
  if (is_on_device && comm->communicator->device() == nullptr)
    return refuse(__func__, "a communicator of CPU memory takes scalars of host memory: give fcclScalarHostImmediate");
  if (!fccl::is_valid(datatype)) return refuse(__func__, fmt::format("datatype {} is no fcclDataType_t", int{datatype}));
  if (fccl::reduce_kernel(datatype, fccl::ReduceOp::premul_sum) == nullptr)
    return refuse(__func__, fccl::no_kernel(datatype, fccl::ReduceOp::premul_sum));
  fccl::Communicator::Factor factor{datatype, {}, is_on_device ? scalar : nullptr};
  if (is_on_device) {
    if (auto known = comm->communicator->check_place("scalar", scalar); !known) return report(__func__, known);
  } else {
    std::memcpy(&factor.scalar.bits, scalar, fccl::size_of(datatype));
  }
  auto made = comm->communicator->create_operator(factor);
  if (made) *op = *made;
  return report(__func__, made);
}

fcclResult_t fcclRedOpDestroy(fcclRedOp_t op, fcclComm_t comm) {
  if (comm == nullptr) return refuse(__func__, "comm is NULL");
  return report(__func__, comm->communicator->destroy_operator(op));
}

fcclResult_t fcclCommGetCounter(fcclComm_t comm, fcclColl_t coll, fcclCounter_t* counter) {
  if (comm == nullptr || counter == nullptr) return refuse(__func__, "comm or counter is NULL");
  if (static_cast<unsigned>(coll) >= fcclNumColls)
    return refuse(__func__, fmt::format("{} is no fcclColl_t", static_cast<int>(coll)));
  *counter = comm->communicator->statistics().of(coll);
  return fcclSuccess;
}

fcclResult_t fcclGetProcessCounter(fcclColl_t coll, fcclCounter_t* counter) {
  if (counter == nullptr) return refuse(__func__, "counter is NULL");
  if (static_cast<unsigned>(coll) >= fcclNumColls)
    return refuse(__func__, fmt::format("{} is no fcclColl_t", static_cast<int>(coll)));
  *counter = fccl::Statistics::of_process(coll);
  return fcclSuccess;
}

const char* fcclCollName(fcclColl_t coll) { return fccl::name_of(coll); }

}  // extern "C"
