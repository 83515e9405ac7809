// Finds and loads the library, compares its contract, and asks it for a transport or a list of NICs.
#include "wire/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string_view>
#include <vector>

#include "os/code_folder.h"
#include "os/error_text.h"
#include "os/signal_handlers.h"
#include "topology/costs.h"
#include "topology/provider.h"
#include "topology/topology.h"

namespace fccl::core {
namespace {

constexpr std::string_view kOfi = "libfccl_ofi.so";

// A library, and who has chosen it.
struct Library {
  std::string path;
  bool is_set = false;  // by FCCL_TRANSPORT_PLUGIN

  std::string text() const { return is_set ? "FCCL_TRANSPORT_PLUGIN=" + path : path; }
};

std::string own_folder() { return folder_of_code(reinterpret_cast<const void*>(&own_folder)); }

// True if dlerror says that libfabric itself is missing.
bool lacks_libfabric(std::string_view why) { return why.find("libfabric.so") != std::string_view::npos; }

tl::unexpected<Error> cannot_reach(const std::string& why, MessageCode code = fcclSystemError) {
  return fail(code, "cannot reach other hosts: " + why);
}

// With a mere name the loader would also search the current directory, if LD_LIBRARY_PATH has an empty element.
Result<Library> find(const std::string& library) {
  if (library.find('/') != std::string::npos) {
    if (::access(library.c_str(), F_OK) == 0) return Library{library, true};
    return cannot_reach(fmt::format("FCCL_TRANSPORT_PLUGIN={} cannot be found on this host ({}); give the path that the shared "
                                    "library of a transport has on every host, or unset the variable to take libfabric",
                                    library, error_text(errno)),
                        MessageKind::plugin_not_found);
  }
  const std::string_view name = library.empty() ? kOfi : std::string_view(library);
  const std::string folder = own_folder();
  std::string beside = fmt::format("{}/{}", folder, name);
  if (!folder.empty() && ::access(beside.c_str(), F_OK) == 0) return Library{beside, false};
  return cannot_reach(
      fmt::format("there is no {} in {}, where this libfccl is and the only place where it is looked for; install "
                  "the one that was built with this libfccl, beside it",
                  name, folder.empty() ? "the folder, which cannot be found," : folder),
      MessageKind::no_plugin);
}

Result<void*> load(const Library& library) {
  if (void* loaded = ::dlopen(library.path.c_str(), RTLD_NOW | RTLD_LOCAL)) return loaded;
  const std::string why = ::dlerror();
  if (library.is_set)
    return cannot_reach(fmt::format("{} cannot be loaded ({}); see by ldd what it lacks, name another library, or unset the "
                                    "variable to take libfabric",
                                    library.text(), why),
                        MessageKind::plugin_not_loaded);
  if (lacks_libfabric(why))
    return cannot_reach(fmt::format("libfabric is not installed ({}); install it: apt-get install libfabric1, dnf install "
                                    "libfabric, or on AWS the EFA installer",
                                    why),
                        MessageKind::plugin_not_loaded);
  return cannot_reach(
      fmt::format("{} cannot be loaded ({}); install the one that was built with this libfccl", library.text(), why),
      MessageKind::plugin_not_loaded);
}

// Returns the library's plug-in, once it is known to keep the same contract.
Result<const TransportPlugin*> plugin_of(const Library& library) {
  FCCL_TRY_ASSIGN(const auto loaded, load(library));
  const auto* plugin = static_cast<const TransportPlugin*>(::dlsym(loaded, kPluginSymbol));
  if (plugin == nullptr || plugin->contract == nullptr)
    return cannot_reach(
        fmt::format("{} is not a transport of FCCL, as it has no {}; name the library of one, or let this one define it as "
                    "docs/how_to/write_a_transport.md says",
                    library.text(), kPluginSymbol));
  if (std::string_view(plugin->contract) != kTransportContract)
    return cannot_reach(
        fmt::format(
            R"({} keeps "{}", but this libfccl has "{}"; {})", library.text(), plugin->contract, kTransportContract,
            library.is_set ? "build it with the headers that were installed with this libfccl" : "install both from one build"),
        MessageKind::other_plugin);
  return plugin;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Returns what makes no sense in an offer, "" if all of it does.
std::string fault_of(const OfferedNics& offered) {
  if (!is_provider_name(offered.provider)) return fmt::format("a provider with a name that is not made of {}", kFormOfProvider);
  if (offered.nics.empty()) return fmt::format("no NIC of its provider {}", offered.provider);
  std::set<std::string_view> names;
  for (const Nic& nic : offered.nics)
    if (nic.name.empty() || !names.insert(nic.name).second)
      return fmt::format("NICs of which {}", nic.name.empty() ? "one has no name" : "two have the name " + nic.name);
  const std::string fault = fault_of(offered.costs);
  return fault.empty() ? "" : fmt::format("costs of its provider {} that make no sense: {}", offered.provider, fault);
}

// Returns what makes no sense in the limits of a transport that was opened, "" if all of it does.
std::string fault_of(const TransportLimits& limits, const TransportRequest& request) {
  const size_t wanted = std::max<size_t>(request.nics.size(), 1);
  if (limits.rails < 1 || static_cast<size_t>(limits.rails) != wanted)
    return fmt::format("with {} rails for {} NICs", limits.rails, wanted);
  if (limits.outstanding < 1 || limits.write_bytes < 1)
    return fmt::format("that holds {} operations and writes {} bytes", limits.outstanding, limits.write_bytes);
  return "";
}

}  // namespace

std::string name_of_plugin(const std::string& library) {
  return library.empty() ? std::string(kOfi) : library.substr(library.rfind('/') + 1);
}

Result<std::unique_ptr<Transport>> open_transport(const std::string& library, const TransportRequest& request) {
  const SignalHandlers kept;
  FCCL_TRY_ASSIGN(const auto found, find(library));
  FCCL_TRY_ASSIGN(const auto* plugin, plugin_of(found));
  FCCL_TRY_ASSIGN(auto transport, plugin->open(request));
  if (transport == nullptr) return cannot_reach(found.text() + " opens no transport and gives no error; correct its open");
  if (const std::string fault = fault_of(transport->limits(), request); !fault.empty())
    return cannot_reach(fmt::format("{} opens a transport {}; correct its open", found.text(), fault));
  return transport;
}

Result<OfferedNics> list_nics(const std::string& library, const NicsRequest& request) {
  const SignalHandlers kept;
  FCCL_TRY_ASSIGN(const auto found, find(library));
  FCCL_TRY_ASSIGN(const auto* plugin, plugin_of(found));
  FCCL_TRY_ASSIGN(auto offered, plugin->list_nics(request));
  if (const std::string fault = fault_of(offered); !fault.empty())
    return cannot_reach(fmt::format("{} offers {}; correct its list_nics", found.text(), fault));
  if (!request.provider.empty() && offered.provider != request.provider)
    return fail(fcclInvalidUsage,
                fmt::format("cannot reach other hosts: {} has the provider {}, but FCCL_TRANSPORT={} asks for "
                            "another; set it to that one, or to auto",
                            found.text(), offered.provider, request.provider));
  return offered;
}

Result<OfferedNics> allowed_nics(const Settings& settings) {
  const NicsRequest request{settings.transport == "auto" ? "" : settings.transport, split_at_commas(settings.nics)};
  auto offered = list_nics(settings.transport_plugin, request);
  if (offered && request.names.empty()) std::ranges::sort(offered->nics, comes_before);
  return offered;
}

}  // namespace fccl::core
