// The end of a group.
#include "communicator/group.h"

#include <algorithm>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "communicator/bounced_call.h"
#include "communicator/communicator.h"
#include "communicator/issued_call.h"
#include "communicator/issued_group.h"
#include "communicator/stream.h"
#include "communicator/worker.h"
#include "system/thread.h"

namespace fccl {

constinit thread_local int Group::depth = 0;

Group& Group::of_thread() {
  thread_local Group group;
  return group;
}

void Group::add(Communicator& communicator, const Call& call, Stream* stream) {
  calls_.push_back({&communicator, call, stream});
  if (call.uneven == nullptr) return;
  blocks_.push_back(std::make_unique<const UnevenBlocks>(*call.uneven));
  std::get<Call>(calls_.back().call).uneven = blocks_.back().get();
}

// What was in it, at the end of the outermost one.
Result<std::optional<Group::Contents>> Group::close() {
  if (depth == 0) return fail(fcclInvalidUsage, "no group of this thread is open: each end needs an fcclGroupStart before it");
  if (--depth > 0) return std::optional<Contents>{};
  Contents contents{std::exchange(calls_, {}), std::exchange(blocks_, {}), std::exchange(creations_, {})};
  if (const auto refused = std::exchange(refused_, {}))
    return fail(refused->code, "a call of the group was refused, so none was issued: " + refused->message);
  return std::optional(std::move(contents));
}

Result<void> Group::end() {
  auto contents = close();
  if (!contents) return fail(std::move(contents).error());
  if (!*contents) return {};
  FCCL_TRY(run_side_by_side((*contents)->creations));
  Result<void> result = issue((*contents)->calls);
  // The next group finds the room.
  (*contents)->calls.clear();
  if (calls_.empty()) calls_.swap((*contents)->calls);
  return result;
}

// Nothing is issued unless every communicator and stream takes calls; only what happens at that moment on another thread can
// stop it halfway, and that ends the communicator.
Result<void> Group::issue(const std::vector<GroupedCall>& calls) {
  if (calls.empty()) return {};
  for (const GroupedCall& each : calls) {
    FCCL_TRY(each.communicator->check_usable());
    if (each.stream != nullptr) FCCL_TRY(each.stream->check_usable());
    if (each.stream == nullptr && Worker::is_this_thread())
      return fail(fcclInvalidUsage, "a host function may not wait for a group of calls");
  }
  IssuedGroup here(true);
  std::map<Stream*, std::unique_ptr<IssuedGroup>> by_stream;
  const auto group_of = [&](Stream* stream) -> IssuedGroup& {
    std::unique_ptr<IssuedGroup>& group = by_stream[stream];
    if (!group) group = std::make_unique<IssuedGroup>();
    return *group;
  };
  Result<void> result;
  for (const GroupedCall& each : calls) {
    const Result<void> issued = std::visit(
        [&](const auto& call) { return each.communicator->issue(call, each.stream == nullptr ? here : group_of(each.stream)); },
        each.call);
    if (!issued && result) result = fail(issued.error());
  }
  for (auto& [stream, group] : by_stream) stream->enqueue(std::move(group));
  if (auto ended = here.run(); !ended && result) result = fail(ended.error());
  return result;
}

Result<double> Group::simulate_end() {
  const auto contents = close();
  if (!contents) return fail(contents.error());
  if (!*contents) return 0.0;
  std::map<const Communicator*, double> seconds;
  for (const GroupedCall& each : (*contents)->calls)
    seconds[each.communicator] += std::visit([&](const auto& call) { return each.communicator->estimate(call); }, each.call);
  double longest = 0;
  for (const auto& [communicator, taken] : seconds) longest = std::max(longest, taken);
  return longest;
}

Result<void> run_side_by_side(const std::vector<std::function<Result<void>()>>& tasks) {
  if (tasks.empty()) return {};
  std::vector<Result<void>> results(tasks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i + 1 < tasks.size(); ++i) {
    auto thread = start_thread({"fccl-creation", "makes a communicator of a group"}, [&, i] { results[i] = tasks[i](); });
    if (thread)
      threads.push_back(std::move(*thread));
    else
      results[i] = fail(std::move(thread).error());
  }
  results.back() = tasks.back()();
  for (std::thread& thread : threads) thread.join();
  for (Result<void>& result : results)
    if (!result) return std::move(result);
  return {};
}

}  // namespace fccl
