// The conformance suite of GPUs: memory that the library makes, lends and borrows.
#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "devices/conformance.h"

namespace fccl::core {

namespace {

constexpr size_t kLong = 70'003;

template <class T>
T expect(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

TEST_P(DeviceConformance, memory_of_the_library_is_reached_by_copies) {
  if (!gpu().limits().lends) GTEST_SKIP() << gpu().limits().name << " lends no memory";
  const auto memory = expect(gpu().make_memory(kLong));
  write_by_gpu(memory->address(), values(kLong, 1));
  EXPECT_EQ(read_by_gpu(memory->address(), kLong), values(kLong, 1));
  EXPECT_TRUE(gpu().share(*memory, Access::read));
  EXPECT_EQ(read_by_gpu(memory->address(), kLong), values(kLong, 1));
}

TEST_P(DeviceConformance, memory_is_the_same_where_it_is_borrowed) {
  if (!gpu().limits().lends) GTEST_SKIP() << gpu().limits().name << " lends no memory";
  const auto memory = expect(gpu().make_memory(kLong));
  const auto borrowed = expect(gpu().borrow(expect(gpu().lend(*memory)), kLong, Access::read));
  EXPECT_NE(borrowed->address(), memory->address());
  for (int iteration = 1; iteration < 3; ++iteration) {
    write_by_gpu(memory->address(), values(kLong, iteration));
    EXPECT_EQ(read_by_gpu(borrowed->address(), kLong), values(kLong, iteration));
  }
}

TEST_P(DeviceConformance, memory_that_was_borrowed_to_write_is_written_where_it_was_made) {
  if (!gpu().limits().lends) GTEST_SKIP() << gpu().limits().name << " lends no memory";
  const auto memory = expect(gpu().make_memory(kLong));
  const auto borrowed = expect(gpu().borrow(expect(gpu().lend(*memory)), kLong, Access::write));
  write_by_gpu(memory->address(), values(kLong, 4));
  write_by_gpu(borrowed->address(), values(kLong, 5));
  EXPECT_EQ(read_by_gpu(memory->address(), kLong), values(kLong, 5));
}

TEST_P(DeviceConformance, memory_stays_while_anybody_has_it) {
  if (!gpu().limits().lends) GTEST_SKIP() << gpu().limits().name << " lends no memory";
  auto memory = expect(gpu().make_memory(kLong));
  const auto borrowed = expect(gpu().borrow(expect(gpu().lend(*memory)), kLong, Access::read));
  write_by_gpu(memory->address(), values(kLong, 3));
  memory.reset();
  EXPECT_EQ(read_by_gpu(borrowed->address(), kLong), values(kLong, 3));
}

TEST_P(DeviceConformance, a_descriptor_of_something_else_is_not_borrowed) {
  if (!gpu().limits().lends) GTEST_SKIP() << gpu().limits().name << " lends no memory";
  const auto borrowed = gpu().borrow(Descriptor(::dup(STDERR_FILENO)), kLong, Access::read);
  ASSERT_FALSE(borrowed);
  EXPECT_FALSE(borrowed.error().message.empty());
}

TEST_P(DeviceConformance, a_gpu_may_reach_itself) { EXPECT_TRUE(gpu().may_reach(gpu().limits().bus_id)); }

}  // namespace

}  // namespace fccl::core
