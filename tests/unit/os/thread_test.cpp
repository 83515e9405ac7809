// Tests of starting threads.
#include "os/thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <string>

#include "processes/no_threads.h"
#include "processes/threads.h"

namespace fccl::core {
namespace {

constexpr ThreadRole kRole{"fccl-test", "waits for this test"};

std::atomic<int> signals_taken{0};

TEST(Thread, that_cannot_be_started_is_an_error_that_says_what_for_and_what_to_try) {
  const testing::NoThreads here;
  const auto thread = start_thread(kRole, [] {});
  ASSERT_FALSE(thread);
  EXPECT_EQ(thread.error().code, fcclSystemError);
  for (const char* word : {"fccl-test", "waits for this test", "ulimit -u"})
    EXPECT_NE(thread.error().message.find(word), std::string::npos) << thread.error().message;
}

TEST(Thread, has_its_name_and_blocks_every_signal_of_the_application) {
  std::atomic<bool> begun{false}, over{false};
  auto thread = start_thread(kRole, [&] {
    begun = true;
    over.wait(false);
  });
  ASSERT_TRUE(thread);
  // Until the work begins, the thread blocks every signal.
  while (!begun) std::this_thread::yield();
  int found = 0;
  for (const auto& other : testing::threads_of_process()) {
    if (other.name != kRole.name) continue;
    ++found;
    EXPECT_EQ(other.blocked & testing::signals_of_application(), testing::signals_of_application());
    EXPECT_EQ(other.blocked & testing::bit_of(SIGSEGV), 0u);
  }
  EXPECT_EQ(found, 1);
  over = true;
  over.notify_all();
  thread->join();
}

TEST(Thread, leaves_whoever_starts_it_the_signals_that_it_had) {
  ::signal(SIGUSR1, [](int) { ++signals_taken; });
  auto thread = start_thread(kRole, [] {});
  ASSERT_TRUE(thread);
  thread->join();
  ::raise(SIGUSR1);
  EXPECT_EQ(signals_taken, 1);
}

}  // namespace
}  // namespace fccl::core
