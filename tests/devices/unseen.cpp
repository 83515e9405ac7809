// Unseen: locks and lists over the kernel's futex and the compiler's atomics. Compiled without the thread sanitizer.
#include "devices/unseen.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace fccl::core::simulated {

namespace {

// Returns at once where the value is another one, and sometimes for no reason.
void sleep_while(uint32_t* value, uint32_t is) { ::syscall(SYS_futex, value, FUTEX_WAIT_PRIVATE, is, nullptr, nullptr, 0); }

void wake_all(uint32_t* value) { ::syscall(SYS_futex, value, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0); }

uint32_t read(uint32_t* value) { return __atomic_load_n(value, __ATOMIC_ACQUIRE); }

}  // namespace

void UnseenLock::lock() {
  uint32_t expected = 0;
  if (__atomic_compare_exchange_n(&state_, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
  while (__atomic_exchange_n(&state_, 2, __ATOMIC_ACQUIRE) != 0) sleep_while(&state_, 2);
}

void UnseenLock::unlock() {
  if (__atomic_exchange_n(&state_, 0, __ATOMIC_RELEASE) == 2) wake_all(&state_);
}

void UnseenDoor::pass() {
  for (uint32_t shut = read(&shut_by_); shut != 0; shut = read(&shut_by_)) sleep_while(&shut_by_, shut);
}

void UnseenDoor::shut() { __atomic_fetch_add(&shut_by_, 1, __ATOMIC_ACQ_REL); }

void UnseenDoor::open() {
  if (__atomic_sub_fetch(&shut_by_, 1, __ATOMIC_ACQ_REL) == 0) wake_all(&shut_by_);
}

void* UnseenPointer::get() const { return __atomic_load_n(&pointer_, __ATOMIC_ACQUIRE); }

void* UnseenPointer::exchange(void* pointer) { return __atomic_exchange_n(&pointer_, pointer, __ATOMIC_ACQ_REL); }

void UnseenList::push(UnseenLink* link) {
  link->next = nullptr;
  lock_.lock();
  (last_ == nullptr ? first_ : last_->next) = link;
  last_ = link;
  lock_.unlock();
  __atomic_fetch_add(&pushes_, 1, __ATOMIC_RELEASE);
  wake_all(&pushes_);
}

UnseenLink* UnseenList::take() {
  for (;;) {
    const uint32_t pushes = read(&pushes_);
    lock_.lock();
    UnseenLink* const first = first_;
    const bool closed = closed_;
    if (first != nullptr) {
      first_ = first->next;
      if (first_ == nullptr) last_ = nullptr;
    }
    lock_.unlock();
    if (first != nullptr || closed) return first;
    sleep_while(&pushes_, pushes);
  }
}

void UnseenList::close() {
  lock_.lock();
  closed_ = true;
  lock_.unlock();
  __atomic_fetch_add(&pushes_, 1, __ATOMIC_RELEASE);
  wake_all(&pushes_);
}

}  // namespace fccl::core::simulated
