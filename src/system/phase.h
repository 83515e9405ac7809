// Phase: the loop of a collective as a coroutine that stops only at counters, so that any thread can resume it.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <new>
#include <utility>

#include "base/check.h"
#include "system/counter.h"

namespace fccl {

// Where the frame of a running phase lies, so that starting one allocates nothing. Owned by a lane, which runs one phase at a
// time.
class FrameMemory {
 public:
  void* take(size_t bytes) {
    check(!taken_ && bytes <= sizeof bytes_, "a lane runs one phase at a time and its frame fits");
    taken_ = true;
    return bytes_;
  }
  static void give_back(void* frame) { static_cast<FrameMemory*>(frame)->taken_ = false; }

 private:
  alignas(64) std::byte bytes_[2048];  // first, so that the address of a frame is the address of its memory
  bool taken_ = false;
};

// How a phase ended. With none of these it did what it is for.
struct Outcome {
  int differing_rank = -1;  // the first rank found that made another call
  bool failed = false;      // the communicator has failed, and its failure may have spoiled the result
  bool closed = false;      // on every rank alike, this way is closed to the call: the ring must be taken, from its beginning
  bool settled = false;     // on every rank alike, the ranks' offers lead to the path that the lane names: no rank enters again
  // Of the differing rank where it made the same call with other counts: the bytes that it sends to this rank, and those that
  // it expects from it.
  bool counts_differ = false;
  uint64_t sends = 0, expects = 0;

  bool agreed() const { return differing_rank < 0; }
};

// co_await Glance{...} looks once before it suspends: for who has better to do than to look, such as to poll.
struct Glance {
  Awaited awaited;
};

// co_await Turn{...} suspends once, though it waits for what is reached: whatever else the thread runs gets a turn.
struct Turn {
  Awaited reached;
};

// A phase is a function that returns Phase, takes its FrameMemory first and its other parameters by value, and waits by
// co_await Awaited{...}. Whoever owns the Phase resumes it, on any thread but one at a time, only when what it awaits is
// reached. Destroying a suspended phase ends it: its loop sees no errors.
class [[nodiscard]] Phase {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  // Peers that are at work on the same call are often only a cache line's way behind, and to suspend costs as much.
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
    Outcome outcome;

    template <class... Parameters>
    static void* operator new(size_t bytes, FrameMemory& memory, const Parameters&...) {
      return memory.take(bytes);
    }
    static void operator delete(void* frame) { FrameMemory::give_back(frame); }

    Phase get_return_object() { return Phase(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_value(Outcome value) { outcome = value; }
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

  // Runs on to the next wait that is not yet reached; true at the end. What the handle's resume does, but without a frame of
  // its own on the way of every call.
  bool resume() {
    __builtin_coro_resume(handle_.address());
    return handle_.done();
  }
  const Awaited& awaited() const { return handle_.promise().awaited; }
  Outcome outcome() const { return handle_.promise().outcome; }
  void end() {
    if (handle_) std::exchange(handle_, {}).destroy();
  }

 private:
  explicit Phase(Handle handle) : handle_(handle) {}
  Handle handle_;
};

}  // namespace fccl
