// FabricEnd: an end of libfabric's network by its plain interface, as any program on the network may open one.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fccl::core::attack {

struct Closer {
  template <class Handle>
  void operator()(Handle* handle) const {
    fi_close(&handle->fid);
  }
};
template <class Handle>
using Owned = std::unique_ptr<Handle, Closer>;

// Owned by an attack; one thread. Whatever fails to open ends the program with a sentence.
class FabricEnd {
 public:
  // Opens the named NIC, or any NIC without a name.
  explicit FabricEnd(const std::string& provider, const std::string& nic = "");

  // The peer behind an IPv4 address and port.
  fi_addr_t peer(const std::string& address, uint16_t port);
  // The address and the port by which others reach this end.
  std::pair<std::string, uint16_t> name() const;

  fid_ep* endpoint() const { return endpoint_.get(); }
  std::byte* bytes() { return bytes_.data(); }
  void* descriptor() const { return descriptor_; }

  struct Ends {
    size_t well = 0;
    size_t badly = 0;
    size_t came = 0;  // from others
  };
  // Counts the operations that have ended since the last poll: as many more may be posted.
  Ends poll();
  // Gives the network a buffer for a message of somebody's.
  void receive();

 private:
  struct InfoCloser {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
  };

  std::vector<std::byte> bytes_;
  std::unique_ptr<fi_info, InfoCloser> info_;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_av> addresses_;
  Owned<fid_cq> completions_;
  Owned<fid_mr> region_;
  Owned<fid_ep> endpoint_;
  void* descriptor_ = nullptr;
};

}  // namespace fccl::core::attack
