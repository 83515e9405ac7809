// Phase: the loop of a collective as a coroutine that stops only at counters, so that any thread can resume it.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <utility>

#include "host/frame_memory.h"
#include "host/outcome.h"
#include "waiting/counter.h"

namespace fccl::core {

// co_await Glance{...} checks once before it suspends, for a caller with other work, such as polling.
struct Glance {
  Awaited awaited;
};

// co_await Turn{...} suspends once although the condition is met, so that the thread's other work gets a turn.
struct Turn {
  Awaited reached;
};

// A phase is a function that returns Phase, takes its FrameMemory first and its other parameters by value, and waits by
// co_await Awaited{...}. Its owner resumes it when the awaited condition is met, on any thread, one at a time. Destroying a
// suspended phase ends it; the phase sees no error.
class [[nodiscard]] Phase {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  // Peers in the same call are often late by no more than a cache line's transfer, which takes about as long as suspending.
  static constexpr int kTries = 8;

  struct Wait {
    Awaited awaited;
    int tries;
    bool await_ready() const { return awaited.reached_within(tries); }
    void await_suspend(Handle handle) const { handle.promise().awaited = awaited; }
    void await_resume() const {}
  };

  struct promise_type {
    Awaited awaited;
    Outcome outcome = Done{};

    template <class... Parameters>
    static void* operator new(size_t bytes, FrameMemory& memory, const Parameters&...) {
      return memory.take(bytes);
    }
    static void operator delete(void* frame) { FrameMemory::give_back(frame); }

    Phase get_return_object() { return Phase(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_value(const Outcome& value) { outcome = value; }
    void unhandled_exception() { std::terminate(); }
    Wait await_transform(Awaited awaited) { return {awaited, kTries}; }
    Wait await_transform(Glance glance) { return {glance.awaited, 1}; }
    Wait await_transform(Turn turn) { return {turn.reached, 0}; }
  };

  Phase() = default;
  Phase(Phase&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Phase& operator=(Phase&& other) noexcept {
    if (this != &other) {
      end();
      handle_ = std::exchange(other.handle_, {});
    }
    return *this;
  }
  ~Phase() { end(); }

  // Runs until the next wait whose condition is not met; returns true at the end. Equals the handle's resume without its extra
  // stack frame in every call.
  bool resume() {
    __builtin_coro_resume(handle_.address());
    return handle_.done();
  }
  const Awaited& awaited() const { return handle_.promise().awaited; }
  // Valid from the end of the phase until it is destroyed.
  const Outcome& outcome() const { return handle_.promise().outcome; }
  void end() {
    if (handle_) std::exchange(handle_, {}).destroy();
  }

 private:
  explicit Phase(Handle handle) : handle_(handle) {}
  Handle handle_;
};

}  // namespace fccl::core
