// The plug-in's one door: what libfccl looks for in libfccl_ofi.so.
#include <fmt/format.h>

#include <string_view>

#include "ofi/transport.h"
#include "wire/build.h"
#include "wire/transport.h"

namespace fccl {

// By the plain name that kTransportSymbol says; extern "C" is for functions that C could call.
__attribute__((visibility("default"))) Result<std::unique_ptr<Transport>> open_here(
    const TransportRequest& request, const char* build) __asm__("fccl_open_transport");

Result<std::unique_ptr<Transport>> open_here(const TransportRequest& request, const char* build) {
  if (std::string_view(build) != kBuild)
    return fail(
        fcclSystemError,
        fmt::format(R"(libfccl_ofi.so was built as "{}", but libfccl as "{}"; install both from one build)", kBuild, build));
  return ofi::OfiTransport::open(request);
}

}  // namespace fccl
