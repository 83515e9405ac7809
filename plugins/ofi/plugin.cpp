// The plug-in that libfccl looks up in libfccl_ofi.so.
#include <vector>

#include "ofi/descriptors.h"
#include "ofi/nics.h"
#include "ofi/transport.h"
#include "wire/transport.h"

namespace fccl::core {
namespace {

// Closes, in programs that this process starts, the descriptors that libfabric has opened since.
class ClosedOnExec {
 public:
  ~ClosedOnExec() { ofi::close_new_on_exec(before_); }

 private:
  std::vector<int> before_ = ofi::open_descriptors();
};

Result<std::unique_ptr<Transport>> open_here(const TransportRequest& request) {
  const ClosedOnExec closed_on_exec;
  return ofi::OfiTransport::open(request);
}

Result<OfferedNics> list_here(const NicsRequest& request) {
  const ClosedOnExec closed_on_exec;
  return ofi::list_nics(request);
}

}  // namespace
}  // namespace fccl::core

const fccl::core::TransportPlugin fccl_transport_plugin{fccl::core::kTransportContract, fccl::core::open_here,
                                                        fccl::core::list_here};
