// Providers: what FCCL asks of each provider of libfabric, and in what they differ, as a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "ofi/handles.h"
#include "ofi/newer_libfabric.h"

namespace fccl::ofi {

// One line of the table. Constant.
struct Provider {
  // In a request.
  std::string_view name;
  // In libfabric, and there before 1.18.
  const char* libfabric_name;
  const char* libfabric_name_before_1_18;
  // Which of the provider's fabrics; null for any.
  const char* fabric;
  // Whether its NICs are the kernel's network interfaces.
  bool of_interfaces;
  // Room in a completion queue for what peers write, beside what this process posts.
  size_t arrivals;
  // Whether a peer that refuses to be connected looks like one that is slow.
  bool refuses_silently;
  // Whether peers' operations wait for polls, whatever the provider says of its progress.
  bool always_needs_polling;
  // Whether a write's completion says who wrote.
  bool names_writers;
  // Switched off before an endpoint is enabled.
  std::span<const NewerOption> forbidden;
  // Tells whether the NIC cannot write by itself; its name is 0 where writes are never emulated.
  NewerOption emulates_writes;
  // What to do where there is none.
  std::string_view advice;
};

// The best first.
std::span<const Provider> providers();
// Null if there is none of that name.
const Provider* find_provider(std::string_view name);

const char* libfabric_name(const Provider& provider, uint32_t installed);
// The version of the interface to ask for, where the version `installed` is there.
uint32_t interface_version(uint32_t installed);
// Null if there is no memory.
Info hints_for(const Provider& provider, uint32_t installed);

}  // namespace fccl::ofi
