// Providers: the properties of each libfabric provider that FCCL uses, as a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "ofi/handles.h"
#include "ofi/newer_libfabric.h"

namespace fccl::core::ofi {

// One line of the table. Constant.
struct Provider {
  // Name in a request.
  std::string_view name;
  // Names in libfabric, now and before 1.18.
  const char* libfabric_name;
  const char* libfabric_name_before_1_18;
  // The provider's fabric to use; null for any.
  const char* fabric;
  // True if its NICs are the kernel's network interfaces.
  bool of_interfaces;
  // Completions of peers' writes that a queue must hold, besides those of this process's operations.
  size_t arrivals;
  // True if a peer that refuses connections looks like a slow one.
  bool refuses_silently;
  // True if a write's completion names its writer.
  bool names_writers;
  // Options that are switched off before an endpoint is enabled.
  std::span<const NewerOption> forbidden;
  // Says what to do if the provider has no NIC.
  std::string_view advice;
};

// Lists the providers, the best first.
std::span<const Provider> providers();
// Returns null for an unknown name.
const Provider* find_provider(std::string_view name);

const char* libfabric_name(const Provider& provider, uint32_t installed);
// Returns the interface version to ask for, given the version `installed`.
uint32_t interface_version(uint32_t installed);
// Returns null if memory is short.
Info hints_for(const Provider& provider, uint32_t installed);

}  // namespace fccl::core::ofi
