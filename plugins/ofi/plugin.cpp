// The two functions that libfccl looks up in libfccl_ofi.so.
#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "ofi/descriptors.h"
#include "ofi/nics.h"
#include "ofi/transport.h"
#include "wire/build.h"
#include "wire/transport.h"

namespace fccl::core {
namespace {

Result<void> compare(const char* build) {
  if (std::string_view(build) == kBuild) return {};
  return fail(
      fcclSystemError,
      fmt::format(R"(libfccl_ofi.so was built as "{}", but libfccl as "{}"; install both from one build)", kBuild, build));
}

// Closes, in programs that this process starts, the descriptors that libfabric has opened since.
class ClosedOnExec {
 public:
  ~ClosedOnExec() { ofi::close_new_on_exec(before_); }

 private:
  std::vector<int> before_ = ofi::open_descriptors();
};

}  // namespace

// Both have the plain names that kTransportSymbol and kNicsSymbol give; extern "C" is only for functions that C could call.
__attribute__((visibility("default"))) Result<std::unique_ptr<Transport>> open_here(
    const TransportRequest& request, const char* build) __asm__("fccl_open_transport");
__attribute__((visibility("default"))) Result<OfferedNics> list_here(const NicsRequest& request,
                                                                     const char* build) __asm__("fccl_list_nics");

Result<std::unique_ptr<Transport>> open_here(const TransportRequest& request, const char* build) {
  FCCL_TRY(compare(build));
  const ClosedOnExec closed_on_exec;
  return ofi::OfiTransport::open(request);
}

Result<OfferedNics> list_here(const NicsRequest& request, const char* build) {
  FCCL_TRY(compare(build));
  const ClosedOnExec closed_on_exec;
  return ofi::list_nics(request);
}

}  // namespace fccl::core
