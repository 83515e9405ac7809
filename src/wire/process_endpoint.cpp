// Keeps the endpoints of this process, by their requests.
#include "wire/process_endpoint.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "metrics/process_page.h"
#include "os/log.h"
#include "os/per_process.h"
#include "wire/endpoint.h"
#include "wire/plugin.h"

namespace fccl::core {
namespace {

// The plug-in, the provider and the NICs.
using Key = std::tuple<std::string, std::string, std::vector<std::string>>;

struct Endpoints {
  std::mutex mutex;
  std::map<Key, std::weak_ptr<Endpoint>> of;
};

constinit PerProcess<Endpoints> endpoints;

}  // namespace

Result<std::shared_ptr<Endpoint>> endpoint_of_process(const std::string& plugin, const TransportRequest& request) {
  Endpoints& all = endpoints.get();
  const std::lock_guard lock(all.mutex);
  std::weak_ptr<Endpoint>& known = all.of[{plugin, request.provider, request.nics}];
  if (auto endpoint = known.lock()) return endpoint;
  FCCL_TRY_ASSIGN(auto transport, open_transport(plugin, request));
  log(LogLevel::info, "between hosts: " + transport->description());
  metrics::show_network({name_of_plugin(plugin), request.provider, request.nics});
  auto endpoint = std::make_shared<Endpoint>(std::move(transport));
  known = endpoint;
  return endpoint;
}

bool has_process_endpoint() {
  Endpoints& all = endpoints.get();
  const std::lock_guard lock(all.mutex);
  return std::ranges::any_of(all.of, [](const auto& each) { return !each.second.expired(); });
}

}  // namespace fccl::core
