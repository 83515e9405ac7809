// Starts threads as tasks need them.
#include "completions.h"

#include <pthread.h>

#include <atomic>
#include <system_error>
#include <thread>
#include <utility>

namespace fccl::torch {

namespace {

// It is made when the library is loaded: if it were made at first use, a fork by another thread could find it half made.
std::atomic<Completions*> current{new Completions};

[[maybe_unused]] const int kRenewedInForks = pthread_atfork(nullptr, nullptr, [] { current = new Completions; });

}  // namespace

Completions& Completions::of_process() { return *current; }

void Completions::start() {
  const std::lock_guard lock(mutex_);
  if (threads_ == 0) add_thread();
}

void Completions::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  posted_.notify_one();
  ensure_idle_thread();
}

void Completions::close(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  done_.wait_for(lock, limit, [this] { return tasks_.empty() && running_ == 0; });
  closed_ = true;
}

void Completions::ensure_idle_thread() {
  if (closed_ || tasks_.empty() || ready_ > 0) return;
  try {
    add_thread();
  } catch (const std::system_error&) {
    // If no new thread can be started, the existing ones run the task.
    if (threads_ == 0) throw;
  }
}

void Completions::add_thread() {
  std::thread([this] { serve(); }).detach();
  ++threads_;
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
    ensure_idle_thread();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
    --running_;
    ++ready_;
    done_.notify_all();
  }
}

}  // namespace fccl::torch
