// The endpoints of this process, by what was asked for.
#include "communicator/process_endpoint.h"

#include <unistd.h>

#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "system/log.h"
#include "wire/plugin.h"

namespace fccl {
namespace {

using Key = std::tuple<pid_t, std::string, std::vector<std::string>>;

// Never destroyed: threads may outlive main.
struct Endpoints {
  std::mutex mutex;
  std::map<Key, std::weak_ptr<Endpoint>> of;
};

Endpoints& endpoints() {
  static auto* const instance = new Endpoints;
  return *instance;
}

}  // namespace

Result<std::shared_ptr<Endpoint>> endpoint_of_process(const TransportRequest& request) {
  const std::lock_guard lock(endpoints().mutex);
  std::weak_ptr<Endpoint>& known = endpoints().of[{::getpid(), request.provider, request.nics}];
  if (auto endpoint = known.lock()) return endpoint;
  auto transport = open_transport(request);
  if (!transport) return fail(std::move(transport).error());
  log(LogLevel::info, "between hosts: " + (*transport)->description());
  auto endpoint = std::make_shared<Endpoint>(std::move(*transport));
  known = endpoint;
  return endpoint;
}

}  // namespace fccl
