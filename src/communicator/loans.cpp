// Waits until every loan has been given back.
#include "communicator/loans.h"

#include <chrono>
#include <thread>

namespace fccl::core {
namespace {

constexpr std::chrono::microseconds kPauseOfLoans{200};

}  // namespace

Loans::~Loans() {
  while (any() && forks_ == forks()) std::this_thread::sleep_for(kPauseOfLoans);
}

}  // namespace fccl::core
