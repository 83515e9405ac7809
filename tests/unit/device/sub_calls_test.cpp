// Tests that sub-calls of a call on GPU memory carry every element in and out of its place.
#include "device/sub_calls.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace fccl::core {
namespace {

constexpr size_t kAnyPitch = SIZE_MAX;
constexpr uint32_t kPoison = 0xdeadbeef;

// A rank's call of 32-bit elements on memory that stands for the GPU's.
struct Case {
  fcclColl_t collective;
  int rank;
  int ranks;
  int root;
  size_t count;
  size_t buffer_bytes;
  size_t most_pitch = kAnyPitch;
};

uint32_t value_of(uint32_t what, size_t block, size_t element) {
  return what + static_cast<uint32_t>(block * 100'000 + element);
}

void apply(const Copies& copies) {
  for (size_t i = 0; i < copies.count; ++i)
    for (size_t row = 0; row < copies[i].rows; ++row)
      std::memcpy(copies[i].to + row * copies[i].to_pitch, copies[i].from + row * copies[i].from_pitch, copies[i].bytes);
}

std::byte* bytes_of(std::vector<uint32_t>& values) { return reinterpret_cast<std::byte*>(values.data()); }

class Buffers {
 public:
  explicit Buffers(const Case& c) : case_(c), row_(row_of(c.collective)) {
    input_.resize(row_.input_blocks(c.ranks) * c.count);
    for (size_t i = 0; i < input_.size(); ++i) input_[i] = value_of(1, i / c.count, i % c.count);
    output_.assign(row_.output_blocks(c.ranks) * c.count, kPoison);
  }

  Call call() {
    return {{case_.collective, fcclInt32, ReduceOp::sum, row_.is_rooted() ? case_.root : -1, case_.count},
            input_.data(),
            output_.data()};
  }
  bool gives() const { return row_.gives(case_.rank, case_.root); }
  bool takes() const { return row_.takes(case_.rank, case_.root); }

  // Checks a sub-call's input, and writes its output.
  void run(const Call& sub, size_t first) const {
    const size_t count = sub.signature.count;
    const auto* send = static_cast<const uint32_t*>(sub.send);
    auto* recv = static_cast<uint32_t*>(sub.recv);
    for (size_t i = 0; gives() && i < row_.input_blocks(case_.ranks) * count; ++i)
      ASSERT_EQ(send[i], value_of(1, i / count, first + i % count));
    for (size_t i = 0; takes() && i < row_.output_blocks(case_.ranks) * count; ++i)
      recv[i] = value_of(7, i / count, first + i % count);
  }

  void expect_all_came() const {
    for (size_t i = 0; i < output_.size(); ++i)
      ASSERT_EQ(output_[i], takes() ? value_of(7, i / case_.count, i % case_.count) : kPoison) << i;
  }

 private:
  Case case_;
  const Collective& row_;
  std::vector<uint32_t> input_, output_;
};

void expect_right(const Case& c) {
  SCOPED_TRACE(std::string(name_of(c.collective)) + " of " + std::to_string(c.count) + ", rank " + std::to_string(c.rank) +
               " of " + std::to_string(c.ranks) + ", buffer " + std::to_string(c.buffer_bytes));
  Buffers buffers(c);
  const SubCalls calls(buffers.call(), c.rank, c.ranks, c.buffer_bytes, c.most_pitch);
  size_t first = 0;
  for (uint64_t part = 0; part < calls.count(); ++part) {
    std::vector<uint32_t> buffer(c.buffer_bytes / sizeof(uint32_t) + 1, kPoison);
    apply(calls.in(part, bytes_of(buffer)));
    const Call sub = calls.sub_call(part, bytes_of(buffer));
    buffers.run(sub, first);
    apply(calls.out(part, bytes_of(buffer)));
    EXPECT_EQ(buffer.back(), kPoison) << "a copy went beyond the buffer";
    EXPECT_EQ(sub.signature.count + sub.signature.elsewhere, c.count);
    EXPECT_EQ(sub.signature.part, part);
    first += sub.signature.count;
  }
  EXPECT_EQ(first, c.count);
  buffers.expect_all_came();
}

TEST(SubCalls, take_every_element_there_and_back) {
  for (int collective = 0; collective < fcclCollSend; ++collective)
    for (const int ranks : {1, 2, 3, 8})
      for (int rank = 0; rank < ranks; ++rank)
        for (const size_t count : {0, 1, 7, 64, 65, 1000})
          for (const size_t buffer : {128, 512, 4096, 65536})
            expect_right({static_cast<fcclColl_t>(collective), rank, ranks, ranks / 2, count, buffer});
}

TEST(SubCalls, copy_row_by_row_where_the_pitch_is_more_than_the_device_takes) {
  for (const fcclColl_t collective : {fcclCollAllGather, fcclCollReduceScatter, fcclCollAlltoAll})
    expect_right({collective, 1, 3, 0, 1000, 512, 2000});
}

Call gather_of(size_t count) { return {{fcclCollAllGather, fcclFloat32, ReduceOp::sum, -1, count}, nullptr, nullptr}; }

TEST(SubCalls, need_one_entry_for_all_ranks_of_a_sub_call) {
  std::byte memory[4096];
  const SubCalls calls(gather_of(1000), 1, 8, 4096, kAnyPitch);
  ASSERT_GT(calls.count(), 1U);
  EXPECT_EQ(calls.in(0, memory).count, 1U);
  EXPECT_EQ(calls.out(0, memory).count, 1U);
  EXPECT_EQ(calls.out(0, memory)[0].rows, 8U);
  const SubCalls by_row(gather_of(1000), 1, 8, 4096, 3999);
  EXPECT_EQ(by_row.out(0, memory).count, 8U);
}

TEST(SubCalls, copy_blocks_that_lie_side_by_side_as_one) {
  std::byte memory[4096];
  const SubCalls calls(gather_of(100), 1, 8, 4096, 10);
  ASSERT_EQ(calls.count(), 1U);
  EXPECT_EQ(calls.out(0, memory).count, 1U);
  EXPECT_EQ(calls.out(0, memory)[0].bytes, 3200U);
}

TEST(SubCalls, of_calls_whose_counts_differ_differ_from_the_first_on) {
  std::byte memory[4096];
  const SubCalls mine(gather_of(1000), 0, 2, 4096, kAnyPitch), theirs(gather_of(1001), 0, 2, 4096, kAnyPitch);
  const Signature a = mine.sub_call(0, memory).signature, b = theirs.sub_call(0, memory).signature;
  EXPECT_EQ(a.count, b.count);
  EXPECT_NE(hash_of(a, 7), hash_of(b, 7));
  EXPECT_NE(hash_of(a, 7), hash_of(mine.sub_call(1, memory).signature, 7));
  EXPECT_EQ(describe(a), "AllGather of 1000 float32");
}

TEST(SubCalls, fit_an_element_of_any_type_into_the_least_buffer) {
  std::byte memory[512];
  for (const int ranks : {1, 3, 16}) {
    const Call call{{fcclCollAlltoAll, fcclFloat64, ReduceOp::sum, -1, 5}, memory, memory};
    EXPECT_EQ(SubCalls(call, 0, ranks, SubCalls::least_buffer(ranks), kAnyPitch).count(), 5U) << ranks;
  }
}

}  // namespace
}  // namespace fccl::core
