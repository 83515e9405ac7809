// Finds and loads the library, and asks it for a transport or a list of NICs.
#include "wire/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <string_view>

#include "system/code_folder.h"
#include "system/signal_handlers.h"
#include "wire/build.h"

namespace fccl::core {
namespace {

constexpr const char* kLibrary = "libfccl_ofi.so";

std::string own_folder() { return folder_of_code(reinterpret_cast<const void*>(&own_folder)); }

// True if dlerror says that libfabric itself is missing.
bool lacks_libfabric(std::string_view why) { return why.find("libfabric.so") != std::string_view::npos; }

// With a mere name the loader would also search the current directory, if LD_LIBRARY_PATH has an empty element.
Result<std::string> path_of(const std::string& library) {
  if (library.find('/') != std::string::npos) return library;
  const std::string folder = own_folder();
  std::string beside = folder + "/" + library;
  if (!folder.empty() && ::access(beside.c_str(), F_OK) == 0) return beside;
  return fail(
      fcclSystemError,
      fmt::format("cannot reach other hosts: there is no {} in {}, where this libfccl is and the only place where it is "
                  "looked for; install the one that was built with this libfccl, beside it",
                  library, folder.empty() ? "the folder, which cannot be found," : folder));
}

Result<void*> load(const std::string& library) {
  FCCL_TRY_ASSIGN(const std::string path, path_of(library));
  if (void* loaded = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return loaded;
  const std::string why = ::dlerror();
  if (lacks_libfabric(why))
    return fail(
        fcclSystemError,
        fmt::format("cannot reach other hosts: libfabric is not installed ({}); install it: apt-get install libfabric1, "
                    "dnf install libfabric, or on AWS the EFA installer",
                    why));
  return fail(
      fcclSystemError,
      fmt::format("cannot reach other hosts: {} cannot be loaded ({}); install the one that was built with this libfccl", path,
                  why));
}

template <class Door>
Result<Door> door_of(const std::string& library, const char* symbol) {
  FCCL_TRY_ASSIGN(const auto loaded, load(library));
  if (void* door = ::dlsym(loaded, symbol)) return reinterpret_cast<Door>(door);
  return fail(fcclSystemError,
              fmt::format("cannot reach other hosts: {} is not a transport of FCCL, as it has no {}", library, symbol));
}

}  // namespace

Result<std::unique_ptr<Transport>> open_transport(const TransportRequest& request) {
  return open_transport_of(kLibrary, request);
}

Result<std::unique_ptr<Transport>> open_transport_of(const std::string& library, const TransportRequest& request) {
  const SignalHandlers kept;
  FCCL_TRY_ASSIGN(const auto open, door_of<OpenTransport>(library, kTransportSymbol));
  return (open)(request, kBuild);
}

Result<OfferedNics> list_nics(const NicsRequest& request) { return list_nics_of(kLibrary, request); }

Result<OfferedNics> list_nics_of(const std::string& library, const NicsRequest& request) {
  const SignalHandlers kept;
  FCCL_TRY_ASSIGN(const auto list, door_of<ListNics>(library, kNicsSymbol));
  return (list)(request, kBuild);
}

}  // namespace fccl::core
