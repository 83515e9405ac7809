// The conformance suite as a probe of ./dev gpu: a row per sentence; status 77 where there is no GPU.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "device/device.h"
#include "gpu/row.h"

namespace fccl {

namespace {

constexpr int kNoGpu = 77;
constexpr int kQuestion = 12;  // the decision whose laws these are

void print(const std::string& gpu, const gpu::Row& row) {
  std::printf("%s\n", gpu::to_json(kQuestion, gpu, row).c_str());
  std::fflush(stdout);
}

class Rows : public testing::EmptyTestEventListener {
 public:
  explicit Rows(std::string gpu) : gpu_(std::move(gpu)) {}

  void OnTestEnd(const testing::TestInfo& test) override {
    const testing::TestResult& result = *test.result();
    std::string what = test.name();
    what = what.substr(0, what.find('/'));
    for (char& each : what) each = each == '_' ? ' ' : each;
    std::string note;
    for (int i = 0; i < result.total_part_count() && note.empty(); ++i) note = result.GetTestPartResult(i).message();
    print(gpu_, result.Skipped() ? gpu::unsupported(what, note) : gpu::works(what, result.Passed(), note));
  }

 private:
  std::string gpu_;
};

}  // namespace

}  // namespace fccl

int main(int count, char** words) {
  testing::InitGoogleTest(&count, words);
  const auto device = fccl::open_device(0);
  if (!device) {
    fccl::print("", {"the laws of a device", fccl::gpu::Verdict::not_run, std::nullopt, {}, device.error().message});
    return fccl::kNoGpu;
  }
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new fccl::Rows((*device)->limits().name));
  return RUN_ALL_TESTS();
}
