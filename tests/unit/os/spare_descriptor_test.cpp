// Tests of spare descriptors in a process that has as many open as it may.
#include "os/spare_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "os/descriptor.h"

namespace fccl::core {
namespace {

Descriptor open_one() { return Descriptor(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)); }

// Uses up all descriptors while it lives.
class Full {
 public:
  Full() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit none{static_cast<rlim_t>(open_one().get()), before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~Full() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }
  Full(const Full&) = delete;
  Full& operator=(const Full&) = delete;

 private:
  rlimit before_{};
};

TEST(SpareDescriptor, makes_room_for_one_more_and_for_a_second_one) {
  const Full full;
  EXPECT_FALSE(open_one());
  SpareDescriptor spare;
  ASSERT_TRUE(spare.spend());
  const Descriptor first = open_one();
  EXPECT_TRUE(first);
  EXPECT_FALSE(open_one());
  ASSERT_TRUE(spare.spend());
  EXPECT_TRUE(open_one());
  EXPECT_FALSE(spare.spend());
}

TEST(SpareDescriptor, is_held_back_again_once_there_is_room) {
  for (int round = 0; round < 3; ++round) {
    const Full full;
    SpareDescriptor spare;
    EXPECT_TRUE(spare.spend());
    EXPECT_TRUE(open_one());
  }
}

TEST(Descriptors, that_are_lacking_are_told_before_they_are_needed) {
  EXPECT_EQ(lack_of_descriptors(10), 0);
  const Full full;
  EXPECT_EQ(lack_of_descriptors(0), 0);
  EXPECT_EQ(lack_of_descriptors(1), EMFILE);
}

}  // namespace
}  // namespace fccl::core
