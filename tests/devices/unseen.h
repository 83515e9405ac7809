// Unseen: what keeps a simulated GPU's own data whole, and what its threads sleep on, hidden from the thread sanitizer.
//
// A lock orders all that its holders did before and after, and the sanitizer believes it. A GPU gives no such order between its
// queues, nor from a queue to the host. unseen.cpp is therefore compiled without the sanitizer, and whatever these protect is
// touched in such sources only.
#pragma once

#include <cstdint>

namespace fccl::core::simulated {

// Any thread may call. Not recursive.
class UnseenLock {
 public:
  void lock();
  void unlock();

 private:
  uint32_t state_ = 0;  // 0 free, 1 held, 2 held and somebody sleeps
};

// A door that all calls of a GPU pass, and that a call which waits inside the driver shuts for all others. Any thread may call.
class UnseenDoor {
 public:
  // Waits until nobody keeps it shut.
  void pass();
  void shut();
  void open();

 private:
  uint32_t shut_by_ = 0;
};

// A pointer that threads exchange. Any thread may call.
class UnseenPointer {
 public:
  void* get() const;
  // Returns what was there.
  void* exchange(void* pointer);

 private:
  void* pointer_ = nullptr;
};

// Base of what an UnseenList holds.
struct UnseenLink {
  UnseenLink* next = nullptr;
};

// First in, first out; any thread may push, one takes. It holds what it does not own.
class UnseenList {
 public:
  void push(UnseenLink* link);
  // The first; sleeps until there is one, and returns null once the list is closed and empty.
  UnseenLink* take();
  void close();

 private:
  UnseenLock lock_;
  UnseenLink* first_ = nullptr;
  UnseenLink* last_ = nullptr;
  uint32_t pushes_ = 0;
  bool closed_ = false;
};

}  // namespace fccl::core::simulated
