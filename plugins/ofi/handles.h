// Handles: the objects of libfabric, each with one owner that closes it.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <memory>

namespace fccl::core::ofi {

// Closing fails only for an object that is still in use; owners are declared so that users go first.
struct Close {
  template <class Fid>
  void operator()(Fid* object) const {
    fi_close(&object->fid);
  }
};

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};

using Info = std::unique_ptr<fi_info, FreeInfo>;
using Fabric = std::unique_ptr<fid_fabric, Close>;
using Domain = std::unique_ptr<fid_domain, Close>;
using AddressVector = std::unique_ptr<fid_av, Close>;
using CompletionQueue = std::unique_ptr<fid_cq, Close>;
using EndpointHandle = std::unique_ptr<fid_ep, Close>;
using MemoryRegion = std::unique_ptr<fid_mr, Close>;

}  // namespace fccl::core::ofi
