// The HTTP server for the metrics of this process and of its partners on this host.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "sockets/socket.h"

namespace fccl::core {
struct Settings;
}

namespace fccl::core::metrics {

// Starts the server, one thread per process. Does nothing if the process serves already, or if another process of this host's
// job serves at the address. Any thread may call while the process has a communicator. After a failure the process has no
// server.
Result<void> serve(const Address& address);
// Starts the server if the settings ask for it. The first rank of a host calls this for all its ranks. Logs a failure as one
// warning.
void serve_if_asked(const Settings& settings);
// Ends the server once the process has no communicator left. A fork has no server to end.
void stop_serving_if_unused();

// Returns the answer to an HTTP request; `make_text` makes the text of metrics. Returns an empty text until the request is
// complete.
std::string answer_to(std::string_view request, std::string (*make_text)());

// The longest request, in bytes; the server refuses a longer one.
inline constexpr size_t kLongestRequest = 8192;
// The most clients served at a time. A further client takes the place of the oldest.
inline constexpr size_t kMostClients = 16;
// The time that a client has to send its request and to read the answer.
inline constexpr std::chrono::seconds kPatience{5};

}  // namespace fccl::core::metrics
