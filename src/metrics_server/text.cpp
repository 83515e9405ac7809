// Writes the format by hand: lines of a name, labels and a number need less code than a library's interface.
#include "metrics_server/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/signature.h"

namespace fccl::core::metrics {
namespace {

// Escapes the characters of a label's value that the format gives a meaning.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter;
  }
  return out;
}

// By fcclResult_t.
constexpr auto kErrorKinds = std::to_array<const char*>({"none", "cuda", "system", "internal", "argument", "usage", "remote",
                                                         "in_progress", "timeout", "not_implemented", "aborted"});
static_assert(kErrorKinds.size() == fcclNumResults);

std::string name_of_size(size_t size) { return size < kLargest.size() ? fmt::format("{}", kLargest[size]) : "+Inf"; }

std::string in_seconds(uint64_t nanoseconds) {
  return fmt::format("{}.{:09}", nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000);
}

struct CallSums {
  uint64_t calls = 0, bytes = 0, nanoseconds = 0, copied = 0;
  std::array<uint64_t, kBuckets> buckets{};

  void add(const Calls& more) {
    calls += value_of(more.calls);
    bytes += value_of(more.bytes);
    nanoseconds += value_of(more.nanoseconds);
    copied += value_of(more.copied);
    for (size_t i = 0; i < kBuckets; ++i) buckets[i] += value_of(more.buckets[i]);
  }
};

// The calls of one kind, of all communicators of a process.
struct Kind {
  std::string labels;
  CallSums sums;
};

void add_kinds_of(const PageCopy& page, int collective, std::vector<Kind>& kinds) {
  const std::vector<const CommunicatorPart*> communicators = page.communicators();
  for (size_t path = 0; path < kPaths; ++path)
    for (size_t size = 0; size < kSizes; ++size) {
      CallSums sums;
      const auto add_of = [&](const CallTable& table) {
        if (table.has(collective)) sums.add(table.of[static_cast<size_t>(collective)][path][size]);
      };
      add_of(page->gone);
      for (const CommunicatorPart* communicator : communicators) add_of(communicator->calls);
      if (sums.calls == 0 && sums.bytes == 0) continue;
      kinds.push_back(
          {fmt::format(R"(pid="{}",collective="{}",path="{}",size="{}")", page->process,
                       fccl::core::name_of(static_cast<fcclColl_t>(collective)), kPathNames[path], name_of_size(size)),
           sums});
    }
}

std::vector<Kind> kinds_of(std::span<const PageCopy> pages) {
  std::vector<Kind> kinds;
  for (const PageCopy& page : pages)
    for (int collective = 0; collective < fcclNumColls; ++collective) add_kinds_of(page, collective, kinds);
  return kinds;
}

// A communicator of some page, with the labels that tell it apart from the others.
struct Shown {
  std::string labels;
  const CommunicatorPart* part;
};

std::vector<Shown> shown_of(std::span<const PageCopy> pages) {
  std::vector<Shown> shown;
  for (const PageCopy& page : pages) {
    int place = 0;
    for (const CommunicatorPart* each : page.communicators())
      shown.push_back({fmt::format(R"(pid="{}",communicator="{}",place="{}",rank="{}")", page->process, escaped(name_of(*each)),
                                   place++, each->rank),
                       each});
  }
  return shown;
}

class Text {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(std::back_inserter(text_), "# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
  }
  template <class Value>
  void sample(std::string_view name, std::string_view labels, Value value) {
    fmt::format_to(std::back_inserter(text_), "{}{{{}}} {}\n", name, labels, value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void write_histogram(Text& text, const Kind& kind) {
  uint64_t at_most = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    at_most += kind.sums.buckets[i];
    const std::string end =
        i + 1 < kBuckets ? fmt::format("{:.10g}", 1e-9 * static_cast<double>(uint64_t{1} << (kFirstBucketBits + i))) : "+Inf";
    text.sample("fccl_call_seconds_bucket", fmt::format(R"({},le="{}")", kind.labels, end), at_most);
  }
  text.sample("fccl_call_seconds_sum", kind.labels, in_seconds(kind.sums.nanoseconds));
  text.sample("fccl_call_seconds_count", kind.labels, at_most);
}

void write_calls(Text& text, std::span<const Kind> kinds) {
  text.family("fccl_calls_total", "counter", "Calls that have ended well. size: the most bytes of the larger buffer.");
  for (const Kind& kind : kinds) text.sample("fccl_calls_total", kind.labels, kind.sums.calls);
  text.family("fccl_bytes_total", "counter", "Bytes of the larger buffer of these calls.");
  for (const Kind& kind : kinds) text.sample("fccl_bytes_total", kind.labels, kind.sums.bytes);
  text.family("fccl_copied_bytes_total", "counter", "Bytes that a processor read for calls on CUDA memory, where it did.");
  for (const Kind& kind : kinds)
    if (kind.sums.copied > 0) text.sample("fccl_copied_bytes_total", kind.labels, kind.sums.copied);
  text.family("fccl_call_seconds", "histogram", "Time of calls; of those by mailbox and of one rank, one in 64.");
  for (const Kind& kind : kinds) write_histogram(text, kind);
}

void write_flights(Text& text, const Shown& each, uint64_t now_ms) {
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const Flight& flight = each.part->flights[lane];
    if (value_of(flight.is_shown) == 0) continue;
    const uint64_t since = std::min(value_of(flight.since_ms), now_ms);
    text.sample("fccl_call_age_seconds",
                fmt::format(R"({},lane="{}",collective="{}",peer="{}")", each.labels, lane, collective_of(flight),
                            flight.awaited.load(std::memory_order_relaxed)),
                in_seconds((now_ms - since) * 1'000'000));
  }
}

void write_processes(Text& text, std::span<const PageCopy> pages) {
  const auto name_or_none = [](const Name& name) { return name[0] == 0 ? std::string("none") : escaped(text_of(name)); };
  text.family("fccl_build_info", "gauge", "1. transport and provider: between hosts, none where no communicator spans hosts.");
  for (const PageCopy& page : pages)
    text.sample("fccl_build_info",
                fmt::format(R"(pid="{}",version="{}.{}.{}",transport="{}",provider="{}")", page->process, FCCL_MAJOR,
                            FCCL_MINOR, FCCL_PATCH, name_or_none(page->transport), name_or_none(page->provider)),
                1);
  text.family("fccl_errors_total", "counter", "Communicators that failed or could not be made, by the kind of the error.");
  for (const PageCopy& page : pages)
    for (size_t kind = 1; kind < kErrorKinds.size(); ++kind)
      if (kind != fcclInProgress)
        text.sample("fccl_errors_total", fmt::format(R"(pid="{}",kind="{}")", page->process, kErrorKinds[kind]),
                    value_of(page->errors[kind]));
}

void write_init(Text& text, std::span<const Shown> shown) {
  text.family("fccl_init_seconds", "gauge", "Time that the making of a communicator took.");
  for (const Shown& each : shown)
    if (const uint64_t init = value_of(each.part->init_us); init > 0)
      text.sample("fccl_init_seconds", each.labels, in_seconds(init * 1000));
}

void write_waits(Text& text, std::span<const Shown> shown, uint64_t now_ms) {
  text.family("fccl_communicator_ranks", "gauge", "Ranks of a communicator that this process has now.");
  for (const Shown& each : shown) text.sample("fccl_communicator_ranks", each.labels, each.part->ranks);
  text.family("fccl_waited_seconds_total", "counter", "Time waited for another rank, in waits of a millisecond and more.");
  for (const Shown& each : shown)
    for (size_t peer = 0; peer < each.part->waited_us.size(); ++peer)
      if (const uint64_t waited = value_of(each.part->waited_us[peer]); waited > 0)
        text.sample("fccl_waited_seconds_total", fmt::format(R"({},peer="{}")", each.labels, peer), in_seconds(waited * 1000));
  text.family("fccl_call_age_seconds", "gauge", "Age of a call in flight that waits; peer: for whom, -1 for any rank.");
  for (const Shown& each : shown) write_flights(text, each, now_ms);
}

void write_rails(Text& text, std::span<const PageCopy> pages, Count RailPart::* field, std::string_view name,
                 std::string_view help) {
  text.family(name, "counter", help);
  for (const PageCopy& page : pages)
    for (size_t rail = 0; rail < page->rails.size(); ++rail)
      if (value_of(page->rails[rail].messages) > 0)
        text.sample(name,
                    fmt::format(R"(pid="{}",rail="{}",nic="{}")", page->process, rail, escaped(text_of(page->rails[rail].nic))),
                    value_of(page->rails[rail].*field));
}

}  // namespace

std::string text_of(std::span<const PageCopy> pages, uint64_t now_ms) {
  Text text;
  const std::vector<Shown> shown = shown_of(pages);
  write_processes(text, pages);
  write_calls(text, kinds_of(pages));
  write_init(text, shown);
  write_waits(text, shown, now_ms);
  write_rails(text, pages, &RailPart::bytes, "fccl_rail_bytes_total", "Bytes given to a rail between hosts.");
  write_rails(text, pages, &RailPart::messages, "fccl_rail_messages_total", "Messages and writes given to a rail.");
  write_rails(text, pages, &RailPart::retries, "fccl_rail_retries_total", "How often a rail had no room and was asked again.");
  return text.take();
}

}  // namespace fccl::core::metrics
