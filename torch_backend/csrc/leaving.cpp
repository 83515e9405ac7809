// Lets the ranks of a healthy default group leave at one moment.
#include "leaving.h"

#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "completions.h"

namespace fccl {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMeetingTime{200};
// The store's own calls have no deadline where its host is stopped.
constexpr milliseconds kPatience{300};
// For rank 0 to close its store, which the others would still reach.
constexpr milliseconds kHeadStart{5};

// False if somebody has not come.
bool meet(c10d::Store& store, const std::string& key, int size) {
  try {
    const std::string all = key + "all";
    if (store.add(key, 1) == size) {
      store.set(all, "left");
    } else {
      store.wait({all}, kMeetingTime);
    }
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

void leave_together(const c10::intrusive_ptr<c10d::Store>& store, const std::string& key, int rank, int size) {
  auto met = std::make_shared<std::promise<bool>>();
  std::future<bool> result = met->get_future();
  // The store is given back before the caller goes on: its last holder on rank 0 closes it.
  Completions::of_process().post([met = std::move(met), held = store, key, size]() mutable {
    const bool all = meet(*held, key, size);
    held.reset();
    met->set_value(all);
  });
  if (result.wait_for(kPatience) == std::future_status::ready && result.get() && rank != 0)
    std::this_thread::sleep_for(kHeadStart);
}

}  // namespace fccl
