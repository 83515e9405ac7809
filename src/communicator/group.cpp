// The end of a group.
#include "communicator/group.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <variant>

#include "communicator/communicator.h"
#include "operations/bounced_call.h"
#include "operations/issued_call.h"
#include "operations/issued_group.h"
#include "operations/stream.h"
#include "operations/worker.h"
#include "system/thread.h"

namespace fccl {

constinit thread_local int Group::depth = 0;

Group& Group::of_thread() {
  thread_local Group group;
  return group;
}

void Group::add(Communicator& communicator, const Call& call, Stream* stream) {
  calls_.push_back({&communicator, call, stream});
  keep_blocks();
}

void Group::add(Communicator& communicator, const CallOrTransfer& operation, const OnDevice& on_device) {
  calls_.push_back({&communicator, operation, nullptr, on_device});
  keep_blocks();
}

// Of the last call: the caller's live until it returns.
void Group::keep_blocks() {
  auto* const call = std::get_if<Call>(&calls_.back().call);
  if (call == nullptr || call->uneven == nullptr) return;
  blocks_.push_back(std::make_unique<const UnevenBlocks>(*call->uneven));
  call->uneven = blocks_.back().get();
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

Result<void> Group::check(const GroupedCall& call) {
  FCCL_TRY(call.communicator->check_usable());
  if (call.stream != nullptr) return call.stream->check_usable();
  if (Worker::is_this_thread()) return fail(fcclInvalidUsage, "a host function may not wait for a group of calls");
  return call.on_device ? call.communicator->check_on_device(call.call, *call.on_device) : Result<void>{};
}

// Host memory for all of them, or for none.
Result<std::vector<Group::Staged>> Group::stage(const std::vector<GroupedCall>& calls) {
  std::vector<Staged> staged;
  for (const GroupedCall& each : calls) {
    if (!each.on_device) continue;
    auto made = each.communicator->stage(each.call, *each.on_device);
    if (!made) return fail(std::move(made).error());
    staged.push_back({each.communicator, std::move(*made)});
  }
  return staged;
}

// Nothing is issued unless every communicator and stream takes calls, and there is host memory for them; only what happens at
// that moment on another thread can stop it halfway, and that ends the communicator. What is on a device runs here, in host
// memory.
Result<void> Group::issue(const std::vector<GroupedCall>& calls) {
  if (calls.empty()) return {};
  for (const GroupedCall& each : calls) FCCL_TRY(check(each));
  Result<void> result;
  const auto keep = [&result](const Result<void>& one) {
    if (!one && result) result = fail(one.error());
    return one.has_value();
  };
  IssuedGroup here(true);
  ByStream by_stream;
  const auto group_of = [&](Stream* stream) -> IssuedGroup& {
    if (stream == nullptr) return here;
    std::unique_ptr<IssuedGroup>& group = by_stream[stream];
    if (!group) group = std::make_unique<IssuedGroup>();
    return *group;
  };
  const auto add = [&](Communicator& communicator, const CallOrTransfer& operation, Stream* stream) {
    keep(std::visit([&](const auto& one) { return communicator.issue(one, group_of(stream)); }, operation));
  };
  auto staged = stage(calls);
  if (!staged) return fail(std::move(staged).error());
  std::erase_if(*staged, [&](const Staged& each) { return !keep(each.communicator->bring_in(*each.call)); });
  for (const GroupedCall& each : calls)
    if (!each.on_device) add(*each.communicator, each.call, each.stream);
  for (const auto& [communicator, call] : *staged) add(*communicator, call->on_host(), nullptr);
  for (auto& [stream, group] : by_stream) stream->enqueue(std::move(group));
  const bool ended_well = keep(here.run());
  for (const auto& [communicator, call] : *staged) keep(communicator->take_out(*call, ended_well));
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
