// Records, sweeps and reuses events.
#include "launches.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "accelerator.h"

namespace fccl::torch {

Launches& Launches::of_process() {
  static auto* const launches = new Launches;
  return *launches;
}

std::shared_ptr<Launch> Launches::add(const c10::Stream& stream, const c10::Stream& issuer, std::vector<at::Tensor> tensors) {
  const CaptureGuard guard;  // the first record makes the event
  const std::lock_guard lock(mutex_);
  auto launch = std::make_shared<Launch>(Launch{take_event(stream.device()), issuer, std::move(tensors)});
  on_streams_[stream].push_back(launch);
  launch->end.record(stream);
  return launch;
}

std::shared_ptr<Launch> Launches::prepare(const c10::Stream& issuer) {
  const CaptureGuard guard;
  const std::lock_guard lock(mutex_);
  auto launch = std::make_shared<Launch>(Launch{take_event(issuer.device()), issuer});
  if (launch->end.eventId() == nullptr) launch->end.record(issuer);  // makes the event
  return launch;
}

void Launches::keep(const std::shared_ptr<Launch>& launch, const void* group, std::vector<at::Tensor> tensors) {
  const std::lock_guard lock(mutex_);
  launch->tensors = std::move(tensors);
  of_groups_[group].push_back(launch);
}

void Launches::release(Launch& launch) {
  std::vector<at::Tensor> tensors;
  const std::lock_guard lock(mutex_);
  // The tensors are destroyed after the lock is released, since their last holder may take Python's lock.
  tensors.swap(launch.tensors);
}

void Launches::sweep(Queue& queue, std::vector<std::vector<at::Tensor>>& released) {
  while (!queue.empty() && queue.front()->end.query()) {
    released.emplace_back().swap(queue.front()->tensors);
    done_.push_back(std::move(queue.front()));
    queue.pop_front();
  }
}

void Launches::sweep() {
  std::vector<std::vector<at::Tensor>> tensors;
  const CaptureGuard guard;
  const std::lock_guard lock(mutex_);
  for (auto& [stream, queue] : on_streams_) sweep(queue, tensors);
  for (auto& [group, queue] : of_groups_) sweep(queue, tensors);
  const auto forgotten = std::partition(done_.begin(), done_.end(), [](const auto& launch) { return launch.use_count() > 1; });
  // Another thread may have queried the event of a work that it has just released.
  std::atomic_thread_fence(std::memory_order_acquire);
  for (auto launch = forgotten; launch != done_.end(); ++launch) spare_.push_back(std::move((*launch)->end));
  done_.erase(forgotten, done_.end());
}

c10::Event Launches::take_event(c10::Device device) {
  const auto found = std::find_if(spare_.begin(), spare_.end(), [&](const auto& event) { return event.device() == device; });
  if (found == spare_.end()) return c10::Event(device.type());
  c10::Event event = std::move(*found);
  spare_.erase(found);
  return event;
}

}  // namespace fccl::torch
