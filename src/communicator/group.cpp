// Checks, issues and awaits the calls of a group.
#include "communicator/group.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <variant>

#include "communicator/communicator.h"
#include "device_calls/staged_call.h"
#include "operations/host_function.h"
#include "operations/issued_call.h"
#include "operations/issued_group.h"
#include "operations/stream.h"
#include "os/thread.h"
#include "transfers/transfer_lane.h"

namespace fccl::core {

constinit thread_local int Group::depth = 0;

Group& Group::of_thread() {
  thread_local Group group;
  return group;
}

void Group::add(Communicator& communicator, const Call& call, Stream* stream) {
  contents_.calls.push_back({&communicator, call, stream});
  contents_.keep_blocks(contents_.calls.back().call);
}

void Group::add(Communicator& communicator, const CallOrTransfer& operation, const OnDevice& on_device) {
  contents_.on_device.push_back({&communicator, operation, on_device});
  if (auto* const call = std::get_if<Call>(&contents_.on_device.back().operation)) contents_.keep_blocks(*call);
}

void Group::Contents::keep_blocks(Call& call) {
  if (call.uneven == nullptr) return;
  blocks.push_back(std::make_unique<const UnevenBlocks>(*call.uneven));
  call.uneven = blocks.back().get();
}

void Group::Contents::clear() {
  transfers.clear();
  calls.clear();
  on_device.clear();
  blocks.clear();
  creations.clear();
}

Communicator* Group::Contents::only_transfers_of() const {
  if (transfers.empty() || !calls.empty() || !on_device.empty()) return nullptr;
  Communicator* const communicator = transfers.front().communicator;
  for (const GroupedTransfer& each : transfers)
    if (each.stream != nullptr || each.communicator != communicator) return nullptr;
  return communicator;
}

Result<bool> Group::close() {
  if (depth == 0) return fail(fcclInvalidUsage, "no group of this thread is open: each end needs an fcclGroupStart before it");
  if (--depth > 0) return false;
  if (!refused_) [[likely]]
    return true;
  contents_.clear();
  const Error refused = *std::exchange(refused_, {});
  return fail(refused.code, "a call of the group was refused, so none was issued: " + refused.message);
}

Result<void> Group::end() {
  FCCL_TRY_ASSIGN(const bool is_outermost, close());
  if (!is_outermost) return {};
  Result<void> result = run_side_by_side(contents_.creations);
  Communicator* const only = contents_.only_transfers_of();
  if (result && only != nullptr) result = check_may_wait();
  if (result) result = only != nullptr ? only->transfer_together(contents_.transfers) : issue(contents_);
  contents_.clear();
  return result;
}

Result<void> Group::check_may_wait() {
  if (is_in_host_function()) return fail(fcclInvalidUsage, "a host function may not wait for a group of calls");
  return {};
}

Result<void> Group::check(const Contents& contents) {
  const auto check_one = [](const auto& each) -> Result<void> {
    FCCL_TRY(each.communicator->check_usable());
    return each.stream == nullptr ? check_may_wait() : each.stream->check_usable();
  };
  for (const GroupedTransfer& each : contents.transfers) FCCL_TRY(check_one(each));
  for (const GroupedCall& each : contents.calls) FCCL_TRY(check_one(each));
  for (const GroupedOnDevice& each : contents.on_device) {
    FCCL_TRY(check_may_wait());
    FCCL_TRY(each.communicator->check_on_device(each.operation, each.on_device));
  }
  return {};
}

// Takes host memory for all of them, or for none.
Result<std::vector<Group::Staged>> Group::stage(const Contents& contents) {
  std::vector<Staged> staged;
  for (const GroupedOnDevice& each : contents.on_device) {
    FCCL_TRY_ASSIGN(auto made, each.communicator->stage(each.operation, each.on_device));
    staged.push_back({.communicator = each.communicator, .call = std::move(made)});
  }
  return staged;
}

// Issues nothing unless every communicator and stream takes calls, and there is host memory for them; only a simultaneous event
// on another thread can stop it halfway, and that ends the communicator. Operations on a device run here, in host memory.
Result<void> Group::issue(const Contents& contents) {
  FCCL_TRY(check(contents));
  Result<void> result;
  const auto keep = [&result](const Result<void>& one) {
    if (!one && result) result = fail(one.error());
    return one.has_value();
  };
  IssuedGroup here;
  ByStream by_stream;
  const auto group_of = [&](Stream* stream) -> IssuedGroup& {
    if (stream == nullptr) return here;
    std::unique_ptr<IssuedGroup>& group = by_stream[stream];
    if (!group) group = std::make_unique<IssuedGroup>();
    return *group;
  };
  FCCL_TRY_ASSIGN(auto staged, stage(contents));
  // `staged` keeps every call to the end: the first one of a communicator marks this thread as inside it.
  for (Staged& each : staged) each.is_in = keep(each.communicator->bring_in(*each.call));
  for (const GroupedTransfer& each : contents.transfers) keep(each.communicator->issue(each.end, group_of(each.stream)));
  for (const GroupedCall& each : contents.calls) keep(each.communicator->issue(each.call, group_of(each.stream)));
  for (Staged& each : staged)
    each.is_issued = each.is_in && keep(std::visit([&](const auto& one) { return each.communicator->issue(one, here); },
                                                   each.call->on_host()));
  for (auto& [stream, group] : by_stream) stream->enqueue(std::move(group));
  const bool ended_well = keep(here.run());
  for (const Staged& each : staged)
    if (each.is_in) keep(each.communicator->take_out(*each.call, each.is_issued && ended_well));
  return result;
}

Result<double> Group::simulate_end() {
  FCCL_TRY_ASSIGN(const bool is_outermost, close());
  if (!is_outermost) return 0.0;
  std::map<const Communicator*, double> seconds;
  for (const GroupedTransfer& each : contents_.transfers) seconds[each.communicator] += each.communicator->estimate(each.end);
  for (const GroupedCall& each : contents_.calls) seconds[each.communicator] += each.communicator->estimate(each.call);
  for (const GroupedOnDevice& each : contents_.on_device)
    seconds[each.communicator] += std::visit([&](const auto& one) { return each.communicator->estimate(one); }, each.operation);
  contents_.clear();
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

}  // namespace fccl::core
