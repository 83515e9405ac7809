// FabricEnd: an end of libfabric's network by its plain interface.
#include "attack/fabric_end.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace fccl::core::attack {
namespace {

constexpr size_t kBytes = size_t{1} << 16;
constexpr uint64_t kOwnKey = 99;

void must(const char* what, long number) {
  if (number >= 0) return;
  std::fprintf(stderr, "outsider: cannot %s: %s\n", what, fi_strerror(static_cast<int>(-number)));
  std::exit(1);
}

template <class Handle, class Call>
Owned<Handle> open(const char* what, Call call) {
  Handle* handle = nullptr;
  must(what, call(&handle));
  return Owned<Handle>(handle);
}

}  // namespace

FabricEnd::FabricEnd(const std::string& provider, const std::string& nic) : bytes_(kBytes) {
  std::unique_ptr<fi_info, InfoCloser> hints(fi_allocinfo());
  hints->caps = FI_MSG | FI_RMA;
  hints->ep_attr->type = FI_EP_RDM;
  hints->mode = ~uint64_t{0};
  hints->fabric_attr->prov_name = ::strdup(provider.c_str());
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->addr_format = FI_SOCKADDR_IN;
  fi_info* found = nullptr;
  must("find the provider", fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found));
  info_.reset(found);
  while (found != nullptr && !nic.empty() && nic != found->domain_attr->name) found = found->next;
  must("find the NIC", found != nullptr ? 0 : -FI_ENODATA);
  fabric_ = open<fid_fabric>("open the fabric", [&](auto** to) { return fi_fabric(found->fabric_attr, to, nullptr); });
  domain_ = open<fid_domain>("open the domain", [&](auto** to) { return fi_domain(fabric_.get(), found, to, nullptr); });
  fi_av_attr table{};
  table.type = FI_AV_TABLE;
  addresses_ = open<fid_av>("make a table", [&](auto** to) { return fi_av_open(domain_.get(), &table, to, nullptr); });
  fi_cq_attr queue{};
  queue.size = 4096;
  queue.format = FI_CQ_FORMAT_DATA;
  completions_ = open<fid_cq>("make a queue", [&](auto** to) { return fi_cq_open(domain_.get(), &queue, to, nullptr); });
  endpoint_ = open<fid_ep>("open an endpoint", [&](auto** to) { return fi_endpoint(domain_.get(), found, to, nullptr); });
  must("bind the table", fi_ep_bind(endpoint_.get(), &addresses_->fid, 0));
  must("bind the queue", fi_ep_bind(endpoint_.get(), &completions_->fid, FI_TRANSMIT | FI_RECV));
  must("enable the endpoint", fi_enable(endpoint_.get()));
  if ((found->domain_attr->mr_mode & FI_MR_LOCAL) == 0) return;
  region_ = open<fid_mr>("register memory", [&](auto** to) {
    return fi_mr_reg(domain_.get(), bytes_.data(), bytes_.size(), FI_SEND | FI_RECV | FI_READ | FI_WRITE, 0, kOwnKey, 0, to,
                     nullptr);
  });
  descriptor_ = fi_mr_desc(region_.get());
}

fi_addr_t FabricEnd::peer(const std::string& address, uint16_t port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  ::inet_pton(AF_INET, address.c_str(), &name.sin_addr);
  fi_addr_t peer = FI_ADDR_UNSPEC;
  must("take the address", fi_av_insert(addresses_.get(), &name, 1, &peer, 0, nullptr) == 1 ? 0 : -FI_EINVAL);
  return peer;
}

std::pair<std::string, uint16_t> FabricEnd::name() const {
  sockaddr_in name{};
  size_t bytes = sizeof name;
  must("ask for the name", fi_getname(&endpoint_->fid, &name, &bytes));
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &name.sin_addr, text.data(), text.size());
  return {text.data(), ntohs(name.sin_port)};
}

FabricEnd::Ends FabricEnd::poll() {
  Ends ends;
  std::array<fi_cq_data_entry, 16> entries;
  for (;;) {
    const ssize_t number = fi_cq_read(completions_.get(), entries.data(), entries.size());
    if (number == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      if (fi_cq_readerr(completions_.get(), &error, 0) > 0) ++ends.badly;
      continue;
    }
    for (ssize_t i = 0; i < number; ++i)
      ++((entries[static_cast<size_t>(i)].flags & (FI_RECV | FI_REMOTE_WRITE)) != 0 ? ends.came : ends.well);
    if (number < static_cast<ssize_t>(entries.size())) return ends;
  }
}

void FabricEnd::receive() { (void)fi_recv(endpoint(), bytes(), kBytes, descriptor(), FI_ADDR_UNSPEC, nullptr); }

}  // namespace fccl::core::attack
