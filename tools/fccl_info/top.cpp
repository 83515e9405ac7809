// Reads the pages that the processes of a job show.
#include "fccl_info/top.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "metrics/page_copy.h"
#include "os/clock.h"

namespace fccl::core {
namespace {

using metrics::CommunicatorPart;
using metrics::Flight;
using metrics::PageCopy;
using metrics::value_of;

uint64_t count_calls(const CommunicatorPart& part) {
  uint64_t sum = 0;
  for (int collective = 0; collective < fcclNumColls; ++collective)
    if (part.calls.has(collective))
      for (const auto& path : part.calls.of[static_cast<size_t>(collective)])
        for (const metrics::Calls& calls : path) sum += value_of(calls.calls);
  return sum;
}

std::string describe(const Flight& flight, uint64_t now_ms) {
  const int64_t awaited = flight.awaited.load(std::memory_order_relaxed);
  const uint64_t since = std::min(value_of(flight.since_ms), now_ms);
  return fmt::format("in {} of {} bytes for {:.1f} s, waits for {}", collective_of(flight), value_of(flight.bytes),
                     1e-3 * static_cast<double>(now_ms - since), awaited < 0 ? "any rank" : fmt::format("rank {}", awaited));
}

std::string describe(const CommunicatorPart& part, uint64_t now_ms) {
  const std::string name = name_of(part);
  std::string text = fmt::format("  rank {} of {}{}: {} calls done", part.rank, part.ranks,
                                 name.empty() ? "" : fmt::format(" of communicator {}", name), count_calls(part));
  bool waits = false;
  for (const Flight& flight : part.flights)
    if (value_of(flight.is_shown) != 0) {
      text += fmt::format("; {}", describe(flight, now_ms));
      waits = true;
    }
  return text + (waits ? "\n" : "; waits in no call\n");
}

}  // namespace

Result<std::string> top(std::span<const std::string> words) {
  const std::string& word = words.front();
  int process = 0;
  const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), process);
  if (fault != std::errc() || end != word.data() + word.size() || process < 1)
    return fail(fcclInvalidArgument, fmt::format("'{}' is not an id of a process", word));
  FCCL_TRY_ASSIGN(const auto pages, metrics::pages_from(process));
  const uint64_t now_ms = to_ms(Clock::now());
  std::string text;
  for (const PageCopy& page : pages) {
    text += fmt::format("process {}\n", page->process);
    for (const CommunicatorPart* communicator : page.communicators()) text += describe(*communicator, now_ms);
  }
  return text;
}

}  // namespace fccl::core
