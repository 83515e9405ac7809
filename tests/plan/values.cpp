// Messages move symbols, additions make new ones, and at the end stands what the collective means.
#include "plan/values.h"

#include <fmt/format.h>

#include <bit>

#include "plan/meaning.h"

namespace fccl::core::plan {

Value Values::sum(std::span<const Value> values) {
  if (values.size() == 1) return values[0];
  const size_t left = std::bit_floor(values.size() - 1);
  const std::pair both{sum(values.first(left)), sum(values.subspan(left))};
  if (both.first == kNothing || both.second == kNothing) return kNothing;
  const auto [place, is_new] = sums_.try_emplace(both, next_);
  if (is_new) ++next_;
  return place->second;
}

Computation::Computation(const Trial& trial, const Run& run)
    : trial_(trial), run_(run), n_(trial.group.members), values_(n_), stages_(run.steps()) {
  for (std::vector<Value>* values : {&input_, &output_, &parts_}) values->assign(n_ * n_, kNothing);
  for (int m = 0; m < n_; ++m)
    for (int chunk = 0; chunk < n_; ++chunk)
      if (brings(trial, m, chunk)) input_[at(m, chunk)] = values_.of(m, chunk);
  for (int number = 0; number < run.steps(); ++number) is_one_memory_ = is_one_memory_ || run.step(number).count > 1;
}

std::string Computation::fault_of(const std::vector<int>& sorted) {
  for (const int event : sorted) {
    const int number = run_.step_of_first_slice(event);
    if (number < 0) continue;
    const Kind kind = run_.step(number).kind;
    const std::string fault = kind == Kind::send ? stage(number) : kind == Kind::receive ? receive(number) : add(number);
    if (!fault.empty()) return fmt::format("member {}: {}", run_.member_of(number), fault);
  }
  for (int m = 0; m < n_; ++m)
    for (int chunk = 0; chunk < n_; ++chunk)
      if (std::string fault = fault_of_result(m, chunk); !fault.empty()) return fault;
  return "";
}

std::string Computation::stage(int number) {
  const Step& step = run_.step(number);
  if (run_.stager_of(number) != number) return "";
  const std::vector<Value>& from = step.after == 0 ? input_ : output();
  for (int k = 0; k < step.count; ++k) {
    stages_[number].push_back(from[at(run_.member_of(number), chunk_of(step) + k)]);
    if (stages_[number].back() == kNothing)
      return fmt::format("it sends chunk {} to {} without having it", trial_.group.around(chunk_of(step) + k), step.peer);
  }
  return "";
}

std::string Computation::receive(int number) {
  const Step& step = run_.step(number);
  const int m = run_.member_of(number);
  const std::vector<Value>& message = stages_[run_.stager_of(run_.sender_of(number))];
  if (step.here.space == Space::parts) {
    parts_[at(m, step.peer)] = message[0];
    return "";
  }
  for (int k = 0; k < step.count; ++k) {
    Value& place = output()[at(m, step.here.index + k)];
    if (place == message[k] || input_[at(m, step.here.index + k)] == message[k])
      return fmt::format("it receives chunk {} again", trial_.group.around(step.here.index + k));
    place = message[k];
  }
  return "";
}

std::string Computation::add(int number) {
  const int m = run_.member_of(number);
  const int chunk = run_.step(number).here.index;
  std::vector<Value> values(parts_.begin() + m * n_, parts_.begin() + (m + 1) * n_);
  values[m] = input_[at(m, chunk)];
  const Value sum = values_.sum(values);
  if (sum == kNothing) return "it adds a part that it does not have";
  output_[at(m, chunk)] = sum;
  return "";
}

std::string Computation::fault_of_result(int m, int chunk) {
  std::vector<Value> values;
  for (const int member : wanted(trial_, m, chunk)) values.push_back(values_.of(member, chunk_given(trial_, m, chunk)));
  if (values.empty() || values_.sum(values) == output()[at(m, chunk)]) return "";
  // A member's own value need not go through the plan.
  if (!testing::reduces(trial_.collective) && values[0] == input_[at(m, chunk)]) return "";
  return fmt::format("member {} ends without the right value in chunk {}", m, chunk);
}

}  // namespace fccl::core::plan
