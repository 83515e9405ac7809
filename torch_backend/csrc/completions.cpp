// Threads that tell torch about finished work, so that the library's worker never runs code of torch or Python.
#include "completions.h"

#include <thread>
#include <utility>

namespace fccl {

Completions& Completions::of_process() {
  static auto* const completions = new Completions;
  return *completions;
}

void Completions::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  posted_.notify_one();
  add_thread_if_all_are_busy();
}

void Completions::close(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  done_.wait_for(lock, limit, [this] { return tasks_.empty() && running_ == 0; });
  closed_ = true;
}

void Completions::add_thread_if_all_are_busy() {
  if (closed_ || tasks_.empty() || ready_ > 0) return;
  std::thread([this] { serve(); }).detach();
  ++ready_;
}

void Completions::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    posted_.wait(lock, [this] { return !tasks_.empty() && !closed_; });
    --ready_;
    ++running_;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    add_thread_if_all_are_busy();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
    --running_;
    ++ready_;
    done_.notify_all();
  }
}

}  // namespace fccl
