// Loans: a count of the threads that use a communicator in the background.
#pragma once

#include <atomic>

#include "os/forks.h"

namespace fccl::core {

// Counts how many communicators are being made in the background from a handle's communicator. Each making uses that as the
// thread that issues its calls. Any thread may ask; the thread of each making gives its loan back. The destructor runs before
// the communicator's, and waits until no loan is left. In a fork it does not wait, since nothing makes them there.
class Loans {
 public:
  Loans() = default;
  ~Loans();
  Loans(const Loans&) = delete;
  Loans& operator=(const Loans&) = delete;

  void take() { count_.fetch_add(1, std::memory_order_relaxed); }
  void give_back() { count_.fetch_sub(1, std::memory_order_release); }
  bool any() const { return count_.load(std::memory_order_acquire) != 0; }

 private:
  std::atomic<int> count_{0};
  unsigned forks_ = forks();
};

// A loan that has been taken; gives it back at its end. One thread owns it.
class Loan {
 public:
  explicit Loan(Loans& loans) : loans_(loans) {}
  ~Loan() { loans_.give_back(); }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

 private:
  Loans& loans_;
};

}  // namespace fccl::core
