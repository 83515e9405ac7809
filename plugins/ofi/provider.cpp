// The table of providers, and the hints that are made from it.
#include "ofi/provider.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace fccl::core::ofi {
namespace {

// Both would copy data to a process on the same host, and CUDA calls of a provider can wait for a stream that waits for the
// collective. FCCL handles both cases itself.
constexpr std::array kForbiddenOnEfa{kCudaApiPermitted, kSharedMemoryPermitted};

constexpr std::array kProviders{
    Provider{
        .name = "efa",
        .libfabric_name = "efa",
        .libfabric_name_before_1_18 = "efa",
        // "efa-direct" has messages of one packet only.
        .fabric = "efa",
        .of_interfaces = false,
        // The device's queue is not protected from overruns.
        .arrivals = 16384,
        .refuses_silently = false,
        .names_writers = true,
        .forbidden = kForbiddenOnEfa,
        .advice = "see that the instance has an EFA, that its security group admits itself, and that the EFA installer has run",
    },
    Provider{
        .name = "verbs",
        .libfabric_name = "verbs;ofi_rxm",
        .libfabric_name_before_1_18 = "verbs;ofi_rxm",
        .fabric = nullptr,
        .of_interfaces = false,
        .arrivals = 4096,
        .refuses_silently = false,
        // ofi_rxm names no writer, or a wrong one.
        .names_writers = false,
        .forbidden = {},
        .advice = "see that ibv_devinfo shows an active port, and that its interface has an IP address",
    },
    Provider{
        .name = "tcp",
        .libfabric_name = "tcp",
        // Before 1.18 "tcp" means connections under ofi_rxm, where large writes in both directions wait for each other.
        .libfabric_name_before_1_18 = "net",
        .fabric = nullptr,
        .of_interfaces = true,
        .arrivals = 1024,
        .refuses_silently = true,
        .names_writers = true,
        .forbidden = {},
        .advice = "see that an interface is up, and that FI_PROVIDER and FI_TCP_IFACE, if set, do not exclude it",
    },
};

// The newest interface whose structures equal those of the 1.17 headers. EFA uses the NIC's writes only if 1.18 is asked for.
constexpr uint32_t kNewestInterface = FI_VERSION(1, 18);

}  // namespace

std::span<const Provider> providers() { return kProviders; }

const Provider* find_provider(std::string_view name) {
  const auto found = std::ranges::find(kProviders, name, &Provider::name);
  return found == kProviders.end() ? nullptr : &*found;
}

const char* libfabric_name(const Provider& provider, uint32_t installed) {
  return FI_VERSION_LT(installed, FI_VERSION(1, 18)) ? provider.libfabric_name_before_1_18 : provider.libfabric_name;
}

uint32_t interface_version(uint32_t installed) { return std::min(installed, kNewestInterface); }

Info hints_for(const Provider& provider, uint32_t installed) {
  Info hints(fi_allocinfo());
  if (!hints) return hints;
  // FI_SOURCE: every completion must name its sender.
  hints->caps = FI_MSG | FI_RMA | FI_SOURCE;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  // tx_attr->op_flags stays empty: a completion only has to say that the memory may be used again. FI_TRANSMIT_COMPLETE would
  // make newer tcp wait for the peer's answer, which doubles the time of a small write.
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  // FCCL polls anyway; a thread of the provider would only take a core.
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  // fi_freeinfo frees it.
  hints->fabric_attr->prov_name = ::strdup(libfabric_name(provider, installed));
  return hints->fabric_attr->prov_name != nullptr ? std::move(hints) : nullptr;
}

}  // namespace fccl::core::ofi
