// The server of the metrics of this process and of those with which it shares a host.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "sockets/socket.h"

namespace fccl {
struct Settings;
}

namespace fccl::metrics {

// One for each process, on one thread; serving already, nothing happens, also where another process of this host's job serves
// at the address. Any thread may call, while the process has a communicator. A failure leaves the process without a server.
Result<void> serve(const Address& address);
// The same where the settings say, if they say so, by the first rank of a host for all of them. A failure is one warning.
void serve_if_asked(const Settings& settings);
// Ends the server once the process has no communicator any more. In a fork there is none to end.
void stop_serving_if_unused();

// What is answered to a request of HTTP, `make_text` giving the text of metrics; empty as long as the request is not all there.
std::string answer_to(std::string_view request, std::string (*make_text)());

// Of a request: a longer one is refused.
inline constexpr size_t kLongestRequest = 8192;
// Of clients that are served at a time: the next one takes the place of the oldest.
inline constexpr size_t kMostClients = 16;
// A client that is slower than this to ask and to read is left.
inline constexpr std::chrono::seconds kPatience{5};

}  // namespace fccl::metrics
