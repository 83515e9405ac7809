// TestStream: a host stream that is destroyed at the end of its life.
#pragma once

#include "processes/ranks.h"

namespace fccl::core::testing {

class TestStream {
 public:
  TestStream() { EXPECT_TRUE(succeeded(fcclStreamCreate(&stream_))); }
  ~TestStream() { fcclStreamDestroy(stream_); }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;
  operator fcclStream_t() const { return stream_; }

 private:
  fcclStream_t stream_ = nullptr;
};

}  // namespace fccl::core::testing
