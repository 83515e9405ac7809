// The plug-in's one door: what libfccl looks for in libfccl_ofi.so.
#include <fmt/format.h>

#include <string_view>

#include "ofi/transport.h"
#include "wire/build.h"
#include "wire/transport.h"

namespace fccl {

// C++ types by a name of C's: both sides are of one build, which is compared first.
// NOLINTNEXTLINE(clang-diagnostic-return-type-c-linkage)
extern "C" __attribute__((visibility("default"))) Result<std::unique_ptr<Transport>> fccl_open_transport(
    const TransportRequest& request, const char* build) {
  if (std::string_view(build) != kBuild)
    return fail(
        fcclSystemError,
        fmt::format(R"(libfccl_ofi.so was built as "{}", but libfccl as "{}"; install both from one build)", kBuild, build));
  return ofi::OfiTransport::open(request);
}

}  // namespace fccl
