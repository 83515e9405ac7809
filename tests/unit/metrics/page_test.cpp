// Tests of the page of a process: its counts, and the processes that may read it.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "metrics/page_copy.h"
#include "metrics/process_page.h"

namespace fccl::core::metrics {
namespace {

TEST(SizeClass, ends_with_its_largest_size) {
  EXPECT_EQ(size_class_of(0), 0U);
  for (size_t size = 0; size < kLargest.size(); ++size) {
    EXPECT_EQ(size_class_of(kLargest[size]), size);
    EXPECT_EQ(size_class_of(kLargest[size] + 1), size + 1);
  }
  EXPECT_EQ(size_class_of(~uint64_t{0}), kSizes - 1);
}

TEST(Bucket, counts_what_took_at_most_its_power_of_two) {
  EXPECT_EQ(bucket_of(0), 0U);
  for (size_t bucket = 0; bucket + 1 < kBuckets; ++bucket) {
    EXPECT_EQ(bucket_of(uint64_t{1024} << bucket), bucket);
    EXPECT_EQ(bucket_of((uint64_t{1024} << bucket) + 1), bucket + 1);
  }
  EXPECT_EQ(bucket_of(~uint64_t{0}), kBuckets - 1);
}

void call(const CommunicatorPlace& place, fcclColl_t collective, uint64_t times) {
  CallTable& calls = place.part().calls;
  calls.called.fetch_or(uint64_t{1} << collective);
  raise(calls.of[collective][1][0].calls, times);
  calls.of[collective][1][0].add_copied(100 * times);
}

TEST(ProcessPage, keeps_what_a_communicator_has_counted_after_its_end) {
  const uint64_t before = calls_of_process(fcclCollGather, 1, 0).calls;
  {
    const CommunicatorPlace first, second;
    call(first, fcclCollGather, 3);
    call(second, fcclCollGather, 4);
    EXPECT_EQ(calls_of_process(fcclCollGather, 1, 0).calls, before + 7);
  }
  EXPECT_EQ(calls_of_process(fcclCollGather, 1, 0).calls, before + 7);
  EXPECT_EQ(calls_of_process(fcclCollGather, 1, 0).copied, 100 * (before + 7));
  EXPECT_EQ(PageCopy::own()->gone.of[fcclCollGather][1][0].calls.load(), before + 7);
  const CommunicatorPlace third;
  EXPECT_EQ(third.part().calls.of[fcclCollGather][1][0].calls.load(), 0U);
  EXPECT_EQ(calls_of_process(fcclCollGather, 1, 0).calls, before + 7);
  EXPECT_EQ((*PageCopy::of(getpid()))->gone.of[fcclCollGather][1][0].calls.load(), before + 7);
}

TEST(ProcessPage, counts_communicators_that_find_no_place) {
  const uint64_t before = calls_of_process(fcclCollScatter, 1, 0).calls;
  std::vector<std::unique_ptr<CommunicatorPlace>> places;
  for (int i = 0; i < kCommunicators + 3; ++i) places.push_back(std::make_unique<CommunicatorPlace>());
  EXPECT_FALSE(places[kCommunicators - 1]->is_hidden());
  EXPECT_TRUE(places[kCommunicators]->is_hidden());
  for (const auto& place : places) call(*place, fcclCollScatter, 1);
  places.clear();
  EXPECT_EQ(calls_of_process(fcclCollScatter, 1, 0).calls, before + kCommunicators + 3);
}

TEST(ProcessPage, counts_nothing_of_a_parent_in_its_fork) {
  const CommunicatorPlace place;
  call(place, fcclCollReduce, 5);
  const uint64_t before = calls_of_process(fcclCollReduce, 1, 0).calls;
  const pid_t child = fork();
  if (child == 0) {
    page_of_process().rails[0].bytes.fetch_add(7);
    _exit(calls_of_process(fcclCollReduce, 1, 0).calls == 0 && PageCopy::own().communicators().empty() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(calls_of_process(fcclCollReduce, 1, 0).calls, before);
  EXPECT_EQ(page_of_process().rails[0].bytes.load(), 0U);
}

TEST(ProcessPage, shows_the_text_of_the_last_failure_in_letters_that_no_terminal_obeys) {
  count_error(fcclTimeout, "rank 1 is late");
  count_error(fcclRemoteError, "rank 2 died\x1b[1m\n" + std::string(2000, 'x'));
  const PageCopy page = PageCopy::own();
  const std::string text = last_failure_of(*page);
  EXPECT_TRUE(text.starts_with("rank 2 died?[1m?xxx")) << text;
  EXPECT_EQ(text.size(), sizeof(FailureText) - 1);
  EXPECT_GT(value_of(page->failed_ms), 0);
  count_error(fcclSystemError, "short");
  EXPECT_EQ(last_failure_of(*PageCopy::own()), "short");
}

TEST(PageCopy, needs_a_communicator) {
  const auto page = PageCopy::of(getpid());
  ASSERT_FALSE(page);
  EXPECT_NE(page.error().message.find("it has no communicator of FCCL now"), std::string::npos) << page.error().message;
}

TEST(PageCopy, says_that_there_is_no_such_process) {
  const auto page = PageCopy::of(1 << 30);
  ASSERT_FALSE(page);
  EXPECT_NE(page.error().message.find("there is no such process"), std::string::npos) << page.error().message;
}

TEST(PageCopy, does_not_take_the_page_of_a_parent_for_that_of_its_fork) {
  const CommunicatorPlace place;
  const pid_t child = fork();
  if (child == 0)
    while (true) pause();
  const auto page = PageCopy::of(child);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ASSERT_FALSE(page);
  EXPECT_NE(page.error().message.find("it is a fork"), std::string::npos) << page.error().message;
  EXPECT_TRUE(PageCopy::of(getpid()));
}

// A process that shows arbitrary memory under the name of a page.
class Stranger {
 public:
  explicit Stranger(off_t bytes, uint64_t magic = kMagic) {
    std::array<int, 2> ready{};
    EXPECT_EQ(pipe(ready.data()), 0);
    pid = fork();
    if (pid == 0) {
      const int memory = memfd_create(kMemoryName, 0);
      const int64_t words[] = {static_cast<int64_t>(magic), getpid()};
      if (ftruncate(memory, bytes) != 0 || (bytes > 0 && pwrite(memory, words, sizeof words, 0) < 0)) _exit(1);
      (void)!write(ready[1], "x", 1);
      while (true) pause();
    }
    char letter = 0;
    EXPECT_EQ(::read(ready[0], &letter, 1), 1);
    close(ready[0]);
    close(ready[1]);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  ~Stranger() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }

  pid_t pid;
};

TEST(PageCopy, refuses_memory_of_another_size_or_version) {
  EXPECT_TRUE(PageCopy::of(Stranger(sizeof(Page)).pid));
  for (const off_t bytes : {off_t{0}, off_t{16}, static_cast<off_t>(sizeof(Page)) + 8}) {
    const auto page = PageCopy::of(Stranger(bytes).pid);
    ASSERT_FALSE(page);
    EXPECT_NE(page.error().message.find("another version"), std::string::npos) << page.error().message;
  }
  EXPECT_FALSE(PageCopy::of(Stranger(sizeof(Page), kMagic + 1).pid));
}

TEST(PagesFrom, find_the_processes_of_the_host_and_leave_out_those_that_are_gone) {
  CommunicatorPlace place;
  const Stranger other(sizeof(Page));
  place.show([&](CommunicatorPart& part) {
    part.places = 4;
    part.processes = {getpid(), 1 << 30, -5, other.pid};
  });
  const auto pages = pages_from(getpid());
  ASSERT_TRUE(pages);
  ASSERT_EQ(pages->size(), 2U);
  EXPECT_EQ((*pages)[0]->process + (*pages)[1]->process, getpid() + other.pid);
}

}  // namespace
}  // namespace fccl::core::metrics
