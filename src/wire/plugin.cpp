// Plugin: opens a transport that a shared library provides, so that libfccl needs none of what that library needs.
#include "wire/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <string_view>

#include "system/signal_handlers.h"
#include "wire/build.h"

namespace fccl {
namespace {

constexpr const char* kLibrary = "libfccl_ofi.so";

// The folder of the library or program that this code is in; empty if the loader does not know.
std::string own_folder() {
  Dl_info found{};
  if (::dladdr(reinterpret_cast<const void*>(&own_folder), &found) == 0 || found.dli_fname == nullptr) return "";
  const std::string_view path = found.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "" : std::string(path.substr(0, slash));
}

// What dlerror says where libfabric itself is what is missing.
bool lacks_libfabric(std::string_view why) { return why.find("libfabric.so") != std::string_view::npos; }

Result<void*> load(const std::string& library) {
  // One that a file was found for may still lack what it needs, and that is the error worth showing.
  const std::string beside = own_folder() + "/" + library;
  const std::string first = library.find('/') == std::string::npos && ::access(beside.c_str(), F_OK) == 0 ? beside : library;
  if (void* loaded = ::dlopen(first.c_str(), RTLD_NOW | RTLD_LOCAL)) return loaded;
  const std::string why = ::dlerror();
  if (lacks_libfabric(why))
    return fail(
        fcclSystemError,
        fmt::format("cannot reach other hosts: libfabric is not installed ({}); install it: apt-get install libfabric1, "
                    "dnf install libfabric, or on AWS the EFA installer",
                    why));
  return fail(fcclSystemError,
              fmt::format("cannot reach other hosts: there is no {} in {} nor where the loader looks ({}); install "
                          "the one that was built with this libfccl, beside it",
                          library, own_folder(), why));
}

template <class Door>
Result<Door> door_of(const std::string& library, const char* symbol) {
  const auto loaded = load(library);
  if (!loaded) return fail(loaded.error());
  if (void* door = ::dlsym(*loaded, symbol)) return reinterpret_cast<Door>(door);
  return fail(fcclSystemError,
              fmt::format("cannot reach other hosts: {} is no transport of FCCL, as it has no {}", library, symbol));
}

}  // namespace

Result<std::unique_ptr<Transport>> open_transport(const TransportRequest& request) {
  return open_transport_of(kLibrary, request);
}

Result<std::unique_ptr<Transport>> open_transport_of(const std::string& library, const TransportRequest& request) {
  const SignalHandlers kept;
  const auto open = door_of<OpenTransport>(library, kTransportSymbol);
  if (!open) return fail(open.error());
  return (*open)(request, kBuild);
}

Result<OfferedNics> list_nics(const NicsRequest& request) { return list_nics_of(kLibrary, request); }

Result<OfferedNics> list_nics_of(const std::string& library, const NicsRequest& request) {
  const SignalHandlers kept;
  const auto list = door_of<ListNics>(library, kNicsSymbol);
  if (!list) return fail(list.error());
  return (*list)(request, kBuild);
}

}  // namespace fccl
