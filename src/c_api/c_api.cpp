// The C interface: how communicators end, their queries, operators, errors.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "c_api/handle.h"
#include "c_api/report.h"
#include "communicator/group.h"
#include "communicator/operators.h"
#include "device/device.h"
#include "kernels/reduce.h"
#include "operations/host_function.h"
#include "os/log.h"

namespace fccl::core {
namespace {

// Holds this thread's last error, for fcclGetLastError(NULL).
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

// An undefined kind takes the parent's, or without a parent Auto: CUDA if the calling thread has a GPU.
Result<CreateOptions> with_memory(int kind, const CreateOptions* parent, CreateOptions options) {
  if (parent != nullptr && kind != fcclMemoryCpu && (parent->device || kind != fcclMemoryCuda)) return options;
  const int current = kind == fcclMemoryCpu ? -1 : current_device();
  options.device = nullptr;
  if (current < 0 && kind != fcclMemoryCuda) return options;
  // A thread that has chosen no GPU uses the first, as in the CUDA runtime.
  FCCL_TRY_ASSIGN(auto device, open_device(std::max(current, 0)));
  options.device = std::move(device);
  return options;
}

}  // namespace

fcclResult_t report(const char* function, const Error& error) {
  const std::string text = *function == 0 ? error.message : fmt::format("{}: {}", function, error.message);
  last_error() = with_code(text, error.code);
  log(LogLevel::debug, last_error());
  if (Group::is_open() && *function != 0) Group::of_thread().refuse({error.code, text});
  return error.code;
}

Result<CreateOptions> options_of(const fcclConfig_t* config, const CreateOptions* parent) {
  CreateOptions options;
  if (parent != nullptr) {
    options = *parent;
  } else {
    FCCL_TRY_ASSIGN(auto settings, read_settings());
    options.settings = std::move(settings);
  }
  if (config == nullptr) return with_memory(FCCL_CONFIG_UNDEF_INT, parent, std::move(options));
  if (config->magic != FCCL_CONFIG_MAGIC || config->size < sizeof(fcclConfig_t))
    return fail(fcclInvalidArgument, "config was not initialised: start from FCCL_CONFIG_INITIALIZER");
  if (config->memoryKind != FCCL_CONFIG_UNDEF_INT && (config->memoryKind < 0 || config->memoryKind > fcclMemoryCuda))
    return fail(fcclInvalidArgument, fmt::format("config.memoryKind is {}: give a fcclMemoryKind_t", config->memoryKind));
  FCCL_TRY(read_timeout("timeoutMs", config->timeoutMs, options.settings.timeout));
  FCCL_TRY(read_timeout("initTimeoutMs", config->initTimeoutMs, options.settings.init_timeout));
  if (config->commName != nullptr) options.name = std::string(config->commName).substr(0, 31);
  return with_memory(config->memoryKind, parent, std::move(options));
}

}  // namespace fccl::core

using fccl::core::refuse;
using fccl::core::report;

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
  if (comm == nullptr) return fccl::core::last_error().c_str();
  if (comm->pending && comm->pending->state() != fcclSuccess) return comm->pending->failure_text();
  return comm->communicator->last_error();
}

fcclResult_t fcclCommFinalize(fcclComm_t comm) {
  if (comm == nullptr) return refuse(__func__, "comm is NULL");
  if (fccl::core::is_in_host_function()) return fccl::core::refuse_in_host_function(__func__);
  if (comm->pending) comm->pending->end();
  if (const auto made = fccl::core::check_made(comm); !made) return report(__func__, made);
  return report(__func__, comm->communicator->finalize());
}

fcclResult_t fcclCommDestroy(fcclComm_t comm) {
  if (comm == nullptr) return fcclSuccess;
  if (fccl::core::is_in_host_function()) return fccl::core::refuse_in_host_function(__func__);
  delete comm;
  return fcclSuccess;
}

fcclResult_t fcclCommRevoke(fcclComm_t comm, int flags) {
  if (comm == nullptr) return refuse(__func__, "comm is NULL");
  if (const auto made = fccl::core::check_made(comm); !made) return report(__func__, made);
  if (flags != 0) return refuse(__func__, fmt::format("flags is {}: give 0", flags));
  return report(__func__, comm->communicator->revoke());
}

fcclResult_t fcclCommAbort(fcclComm_t comm) {
  if (comm == nullptr) return fcclSuccess;
  if (fccl::core::is_in_host_function()) return fccl::core::refuse_in_host_function(__func__);
  if (comm->pending) comm->pending->end();
  if (comm->communicator) comm->communicator->abort();
  delete comm;
  return fcclSuccess;
}

fcclResult_t fcclCommGetAsyncError(fcclComm_t comm, fcclResult_t* asyncError) {
  if (comm == nullptr || asyncError == nullptr) return refuse(__func__, "comm or asyncError is NULL");
  if (comm->pending && comm->pending->state() != fcclSuccess) {
    *asyncError = comm->pending->state();
    return fcclSuccess;
  }
  if (const auto own = comm->communicator->check_own(); !own) return report(__func__, own);
  const auto error = comm->communicator->async_error();
  *asyncError = error ? fcclResult_t{error->code} : fcclSuccess;
  return fcclSuccess;
}

fcclResult_t fcclCommSetTimeout(fcclComm_t comm, int timeoutMs) {
  if (comm == nullptr) return refuse(__func__, "comm is NULL");
  if (const auto free = fccl::core::check_free(comm); !free) return report(__func__, free);
  if (timeoutMs <= 0) return refuse(__func__, fmt::format("timeoutMs is {}: give milliseconds > 0", timeoutMs));
  comm->communicator->set_timeout(std::chrono::milliseconds(timeoutMs));
  return fcclSuccess;
}

fcclResult_t fcclCommSetEndEvent(fcclComm_t comm, void* event) {
  if (comm == nullptr) return refuse(__func__, "comm is NULL");
  if (const auto free = fccl::core::check_free(comm); !free) return report(__func__, free);
  if (comm->communicator->device() == nullptr)
    return report(__func__, {fcclInvalidUsage, "this is a communicator of CPU memory: its calls end on no CUDA stream"});
  comm->communicator->set_end({event});
  return fcclSuccess;
}

fcclResult_t fcclCommCount(const fcclComm_t comm, int* count) {
  if (comm == nullptr || count == nullptr) return refuse(__func__, "comm or count is NULL");
  if (const auto made = fccl::core::check_made(comm); !made) return report(__func__, made);
  *count = comm->communicator->ranks();
  return fcclSuccess;
}

fcclResult_t fcclCommUserRank(const fcclComm_t comm, int* rank) {
  if (comm == nullptr || rank == nullptr) return refuse(__func__, "comm or rank is NULL");
  if (const auto made = fccl::core::check_made(comm); !made) return report(__func__, made);
  *rank = comm->communicator->rank();
  return fcclSuccess;
}

fcclResult_t fcclCommGetHosts(const fcclComm_t comm, fcclHosts_t* hosts) {
  if (comm == nullptr || hosts == nullptr) return refuse(__func__, "comm or hosts is NULL");
  if (const auto made = fccl::core::check_made(comm); !made) return report(__func__, made);
  *hosts = comm->communicator->hosts();
  return fcclSuccess;
}

fcclResult_t fcclCommCuDevice(const fcclComm_t comm, int* device) {
  if (comm == nullptr || device == nullptr) return refuse(__func__, "comm or device is NULL");
  if (const auto made = fccl::core::check_made(comm); !made) return report(__func__, made);
  if (comm->communicator->device() == nullptr)
    return report(__func__, {fcclInvalidUsage, "this is a communicator of CPU memory: it has no CUDA device"});
  *device = comm->communicator->device()->limits().ordinal;
  return fcclSuccess;
}

fcclResult_t fcclRedOpCreatePreMulSum(fcclRedOp_t* op, void* scalar, fcclDataType_t datatype, fcclScalarResidence_t residence,
                                      fcclComm_t comm) {
  if (op == nullptr || scalar == nullptr || comm == nullptr) return refuse(__func__, "op, scalar or comm is NULL");
  if (const auto made = fccl::core::check_made(comm); !made) return report(__func__, made);
  const bool is_on_device = residence == fcclScalarDevice;
  if (!is_on_device && residence != fcclScalarHostImmediate)
    return refuse(__func__, fmt::format("residence {} is not an fcclScalarResidence_t", static_cast<int>(residence)));
  if (is_on_device && comm->communicator->device() == nullptr)
    return refuse(__func__, "a communicator of CPU memory takes scalars of host memory: give fcclScalarHostImmediate");
  if (!fccl::core::is_valid(datatype))
    return refuse(__func__, fmt::format("datatype {} is not an fcclDataType_t", int{datatype}));
  if (fccl::core::reduce_kernel(datatype, fccl::core::ReduceOp::premul_sum) == nullptr)
    return refuse(__func__, fccl::core::no_kernel(datatype, fccl::core::ReduceOp::premul_sum));
  fccl::core::Operators::Factor factor{datatype, {}, is_on_device ? scalar : nullptr};
  if (is_on_device) {
    if (auto known = comm->communicator->check_place("scalar", scalar); !known) return report(__func__, known);
  } else {
    std::memcpy(&factor.scalar.bits, scalar, fccl::core::size_of(datatype));
  }
  *op = comm->communicator->operators().create(factor);
  return fcclSuccess;
}

fcclResult_t fcclRedOpDestroy(fcclRedOp_t op, fcclComm_t comm) {
  if (comm == nullptr) return refuse(__func__, "comm is NULL");
  if (const auto made = fccl::core::check_made(comm); !made) return report(__func__, made);
  return report(__func__, comm->communicator->operators().destroy(op));
}

}  // extern "C"
