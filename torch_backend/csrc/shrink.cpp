// Continues with some ranks of a process group: as a new one (shrink), or in place (reconfigure, of torch 2.15 on).
#include <c10/util/Exception.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "backend.h"
#include "errors.h"

namespace fccl::torch {
namespace {

// The ranks that are left out of the new communicator; `membership` is the caller's place in the new one.
struct Shrinking {
  std::vector<int> excluded;
  Membership membership;
  int flags;
};

fcclComm_t shrunk(Communicator& communicator, Shrinking shrinking, const char* title) {
  fcclConfig_t config = config_of(shrinking.membership, fcclMemoryCpu);
  fcclComm_t made = nullptr;
  const int count = static_cast<int>(shrinking.excluded.size());
  check(fcclCommShrink(communicator.open(title), shrinking.excluded.data(), count, &made, &config, shrinking.flags),
        communicator.attempt_of(title));
  return made;
}

void refuse_if_on_device(DeviceCalls& device, const char* title) {
  if (device.communicator().is_made()) throw_not_implemented(std::string(title) + " of a group that has used tensors of a GPU");
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> Backend::shrink(const std::vector<int64_t>& excluded, int flags,
                                                  const c10::intrusive_ptr<Options>& options) {
  constexpr const char* kTitle = "fccl:shrink";
  Communicator& cpu = cpu_->communicator();
  const std::scoped_lock turns(cpu.turn(), device_->communicator().turn());
  refuse_if_on_device(*device_, kTitle);
  const auto before = std::count_if(excluded.begin(), excluded.end(), [this](int64_t rank) { return rank < getRank(); });
  const std::string ranks = c10::str("without ", excluded, " of ", getSize());
  const Membership membership{getRank() - static_cast<int>(before), getSize() - static_cast<int>(excluded.size()),
                              options ? options->timeout : timeout_.load(), c10::str(name_, " ", ranks)};
  auto child = c10::make_intrusive<Backend>(membership, cpu.store(), c10::str(cpu.key(), "/", ranks, "/"));
  if (!cpu.is_made()) return child;
  const fcclComm_t comm = shrunk(cpu, {{excluded.begin(), excluded.end()}, membership, flags}, kTitle);
  child->cpu_->communicator().adopt(comm, c10::str(cpu.identity(), "/", ranks));
  return child;
}

#ifdef C10D_BACKEND_HAS_RECONFIGURE
namespace {

constexpr const char* kReconfigure = "fccl:reconfigure";
constexpr const char* kNoCommunicator = "none";

// A rank's handle, as the other ranks get it: the rank's communicator, its rank there, and a word of its own.
struct Handle {
  std::string communicator;
  int rank;
  std::string text;

  bool operator<(const Handle& other) const {
    return std::tie(communicator, rank, text) < std::tie(other.communicator, other.rank, other.text);
  }
};

// "fccl|communicator|rank|word"
Handle parsed(const std::string& text) {
  const size_t first = text.find('|');
  const size_t second = text.find('|', first + 1);
  const size_t third = text.find('|', second + 1);
  TORCH_CHECK_VALUE(third != std::string::npos && text.substr(0, first) == kBackendName, kReconfigure, ": the handle '", text,
                    "' is not of this backend: give what get_reconfigure_handle() has returned on each rank");
  return {text.substr(first + 1, second - first - 1), std::stoi(text.substr(second + 1, third - second - 1)), text};
}

// Returns the handles in the order of the new ranks: the caller's order, or, if torch lets the backend choose, the order of the
// old ranks.
std::vector<Handle> in_order(const c10d::ReconfigureOptions& options) {
  std::vector<Handle> handles;
  const auto take = [&handles](const auto& texts) {
    for (const std::string& text : texts) handles.push_back(parsed(text));
  };
  std::visit(take, options.handles);
  if (std::holds_alternative<std::unordered_set<c10d::ReconfigureHandle>>(options.handles))
    std::sort(handles.begin(), handles.end());
  return handles;
}

// True if these ranks are in their order the majority of one living communicator of `size`: no store is needed then. They must
// be more than half of its ranks, since the others may form a group of their own at the same time, and the library shrinks to
// one communicator only.
bool form_majority(const std::vector<Handle>& handles, int size) {
  const auto of_another = [&handles](const Handle& each) {
    return each.communicator == kNoCommunicator || each.communicator != handles.front().communicator;
  };
  const auto out_of_order = [](const Handle& first, const Handle& second) { return first.rank >= second.rank; };
  return 2 * handles.size() > static_cast<size_t>(size) && std::none_of(handles.begin(), handles.end(), of_another) &&
         std::adjacent_find(handles.begin(), handles.end(), out_of_order) == handles.end();
}

std::vector<int> others_than(const std::vector<Handle>& handles, int size) {
  std::vector<int> excluded;
  for (int rank = 0; rank < size; ++rank) {
    const auto is_it = [rank](const Handle& each) { return each.rank == rank; };
    if (std::none_of(handles.begin(), handles.end(), is_it)) excluded.push_back(rank);
  }
  return excluded;
}

}  // namespace

c10d::ReconfigureHandle Backend::get_reconfigure_handle() const {
  Communicator& cpu = cpu_->communicator();
  const std::string communicator = cpu.is_made() ? cpu.identity() : kNoCommunicator;
  return c10::str(kBackendName, "|", communicator, "|", getRank(), "|", word_);
}

Backend::WorkPtr Backend::reconfigure(const c10d::ReconfigureOptions& options) {
  const std::vector<Handle> handles = in_order(options);
  Communicator& cpu = cpu_->communicator();
  const std::scoped_lock turns(cpu.turn(), device_->communicator().turn());
  refuse_if_on_device(*device_, kReconfigure);
  const std::string own = get_reconfigure_handle();
  const auto place = std::find_if(handles.begin(), handles.end(), [&own](const Handle& each) { return each.text == own; });
  TORCH_CHECK_VALUE(place != handles.end(), kReconfigure, ": this rank's own handle '", own, "' is not among the ",
                    handles.size(), " given: ask every rank for its handle anew before each reconfigure");
  const Membership membership{static_cast<int>(place - handles.begin()), static_cast<int>(handles.size()),
                              options.timeout.value_or(timeout_.load()), name_};
  TORCH_CHECK(uuids_.insert(options.uuid).second, kReconfigure, ": the uuid ", options.uuid, " was already used in this group,",
              " whose ranks may still find what was told under it: give one that none of them has used");
  const std::string key = c10::str(first_key_, "reconfigure/", options.uuid, "/");
  fcclComm_t comm = nullptr;
  std::string identity;
  if (form_majority(handles, getSize())) {
    identity = c10::str(cpu.identity(), "/", options.uuid);
    comm = shrunk(cpu, {others_than(handles, getSize()), membership, FCCL_SHRINK_ABORT}, kReconfigure);
  } else {
    comm = join(*cpu.store(), key + "cpu", membership, fcclMemoryCpu, &identity);
  }
  cpu_->renew(comm, {membership, key + "cpu", identity});
  device_->communicator().replace(nullptr, {membership, key + "cuda", ""});
  rank_ = membership.rank;
  size_ = membership.size;
  monitored_barriers_ = 0;
  split_store_ = nullptr;
  auto work = c10::make_intrusive<Work>(
      rank_, Description{kReconfigure, cpu.group_text(), c10d::OpType::UNKNOWN, ++sequence_, [] {}, nullptr}, Tensors{},
      Tensors{});
  work->complete(nullptr);
  work->complete_future();
  return work;
}
#endif

}  // namespace fccl::torch
