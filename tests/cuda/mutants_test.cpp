// Mutants of the program of a call: each of its entries dropped, moved by one, and miscounted. The test must find every harmful
// mutant: by wrong bytes, by a deadline, or by an error.
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "cuda/altered_gpu.h"
#include "cuda/cuda_ranks.h"
#include "cuda/right_alterations.h"

namespace fccl::core::testing {
namespace {

using How = Alteration::How;
using Kind = Entry::Kind;
using namespace std::chrono_literals;

constexpr int kCalls = 3;
constexpr size_t kCount = 3 * 1024 - 7;  // float32 elements: three sub-calls
constexpr int kTimeout = 250 * kSlowdown;

// Float32 elements of a call of two ranks. A block has five steps, one more than there are slots, but that of an AllReduce
// three, and the call one more, for results.
struct Elements {
  size_t given, taken;
  size_t block;
};

constexpr Elements elements_of(Subject subject) {
  constexpr size_t kGathered = 5 * 1024 - 7, kScattered = 5 * 256 - 7, kShared = 2 * (3 * 256 - 7);
  switch (subject) {
    case Subject::steps:
      return {kGathered, 2 * kGathered, kGathered};
    case Subject::sums:
      return {2 * kScattered, kScattered, kScattered};
    case Subject::shared_sums:
      return {kShared, kShared, kShared};
    case Subject::bounce:
      break;
  }
  return {kCount, kCount, kCount};
}

// One rank's view of its calls: a kernel makes each input right before, and another takes each output right behind.
class Run {
 public:
  Run(CudaSeat& seat, Subject subject, int iteration)
      : seat_(seat),
        subject_(subject),
        elements_(elements_of(subject)),
        count_(elements_.taken),
        bytes_(count_ * sizeof(float)),
        recv_(seat.take(bytes_)),
        send_(subject == Subject::steps ? recv_ + static_cast<size_t>(seat.rank()) * elements_.block * sizeof(float)
                                        : seat.take(elements_.given * sizeof(float))),
        taken_(std::make_shared<std::vector<float>>(count_, -1.0F)),
        iteration_(iteration) {}
  // `slower`: a factor on the time that the first kernel takes.
  void issue(fcclComm_t comm, int slower) {
    seat_.gpu().launch(seat_.stream(), [=, send = send_, iteration = iteration_, rank = seat_.rank(), given = elements_.given] {
      std::this_thread::sleep_for(slower * 3ms);
      auto* values = reinterpret_cast<float*>(simulated::real(send));
      for (size_t i = 0; i < given; ++i) values[i] = value_of(rank, i, iteration);
    });
    issued_ = call(comm, seat_.stream().native);
    seat_.gpu().launch(seat_.stream(), [recv = recv_, taken = taken_, bytes = bytes_] {
      std::memcpy(taken->data(), simulated::real(recv), bytes);
    });
  }
  std::string fault() const {
    if (issued_ != fcclSuccess) return "the call returned an error";
    for (size_t i = 0; i < count_; ++i)
      if ((*taken_)[i] != expected(i)) return "wrong bytes";
    return "";
  }
  std::string fault_after_finalize() const {
    std::vector<float> now(count_);
    seat_.gpu().read(recv_, std::as_writable_bytes(std::span(now)));
    for (size_t i = 0; i < count_; ++i)
      if (now[i] != expected(i)) return "finalize did not wait";
    return "";
  }

 private:
  static float value_of(int rank, size_t index, int iteration) {
    return static_cast<float>((index * 3 + static_cast<size_t>(rank) * 17 + static_cast<size_t>(iteration) * 101) % 4093);
  }

  fcclResult_t call(fcclComm_t comm, void* stream) const {
    const size_t block = elements_.block;
    if (subject_ == Subject::steps) return fcclAllGather(send_, recv_, block, fcclFloat32, comm, stream);
    if (subject_ == Subject::sums) return fcclReduceScatter(send_, recv_, block, fcclFloat32, fcclSum, comm, stream);
    return fcclAllReduce(send_, recv_, block, fcclFloat32, fcclSum, comm, stream);
  }

  float expected(size_t index) const {
    const size_t block = elements_.block;
    if (subject_ == Subject::steps) return value_of(static_cast<int>(index / block), index % block, iteration_);
    if (subject_ == Subject::sums) index += static_cast<size_t>(seat_.rank()) * block;
    return value_of(0, index, iteration_) + value_of(1, index, iteration_);
  }

  CudaSeat& seat_;
  Subject subject_;
  Elements elements_;
  size_t count_;
  size_t bytes_;
  std::byte* recv_;
  std::byte* send_;
  std::shared_ptr<std::vector<float>> taken_;
  int iteration_;
  fcclResult_t issued_ = fcclSuccess;
};

// The delays of a run: without them the bytes that a mutant harms may be there in time by chance.
struct Weather {
  Lateness own;
  Lateness peer;
  std::chrono::microseconds landing{0};  // of what the altered GPU has copied
};
constexpr Weather kWeathers[] = {{{6ms, 0ms}, {}}, {{}, {10ms, 0ms}}, {{0ms, 12ms}, {}}, {{}, {0ms, 12ms}}};

// In which nobody sees a copy in time whose word comes before it.
constexpr Weather kLateLanding = {{}, {}, 8ms};

Lateness times(int factor, const Lateness& lateness) { return {factor * lateness.in, factor * lateness.out}; }

struct Outcome {
  std::string fault;             // the first that is seen, "" if none
  std::vector<Entry> program{};  // as it was meant
};

std::string run_rank(CudaSeat& seat, AlteredGpu& gpu, Subject subject, const Alteration& alteration, int slower) {
  fcclConfig_t config = config_of_cuda_tests();
  config.timeoutMs = kTimeout * slower;
  Comm comm(seat.seat(), config);
  std::vector<std::unique_ptr<Run>> runs;
  for (int i = 0; i < kCalls; ++i) runs.push_back(std::make_unique<Run>(seat, subject, i));
  runs[0]->issue(comm, 1);
  seat.gpu().synchronize(seat.stream());
  gpu.alter(alteration, seat.stream());
  for (int i = 1; i < kCalls; ++i) runs[static_cast<size_t>(i)]->issue(comm, slower);
  const fcclResult_t ended = fcclCommFinalize(comm);
  const std::string behind = ended == fcclSuccess ? runs.back()->fault_after_finalize() : "";
  fcclCommDestroy(comm.release());
  seat.gpu().synchronize(seat.stream());
  std::string fault = ended == fcclTimeout ? "found by a deadline" : ended != fcclSuccess ? "an error" : "";
  for (const auto& run : runs)
    if (fault.empty()) fault = run->fault();
  if (fault.empty()) fault = behind;
  seat.meet();
  return fault;
}

Outcome run_altered(Subject subject, const Alteration& alteration, const Weather& weather, int slower) {
  simulated::uninstall_all();
  simulated::GpuOptions options{.abort_on_misuse = false};
  options.lands_late_us = slower * static_cast<int>(weather.landing.count());
  const auto altered = std::make_shared<AlteredGpu>(options, times(slower, weather.own));
  options.ordinal = 1;
  options.lands_late_us = 0;
  const auto other = std::make_shared<AlteredGpu>(options, times(slower, weather.peer));
  simulated::install(altered);
  simulated::install(other);
  std::array<std::string, 2> faults;
  run_ranks({.as = RanksAs::threads, .ranks = 2}, [&](const Seat& seat) {
    simulated::set_current_device(seat.rank);
    const auto& gpu = seat.rank == 0 ? altered : other;
    CudaSeat own(seat, gpu);
    faults[static_cast<size_t>(seat.rank)] = run_rank(own, *gpu, subject, seat.rank == 0 ? alteration : Alteration{}, slower);
  });
  Outcome outcome{faults[0].empty() ? faults[1] : faults[0], altered->program()};
  simulated::uninstall_all();
  return outcome;
}

// In the first weather that shows a fault. `slower`: a factor on its delays and on the deadline.
Outcome run_altered(Subject subject, const Alteration& alteration, bool says_too_early, int slower) {
  Outcome outcome;
  if (says_too_early) outcome = run_altered(subject, alteration, kLateLanding, slower);
  for (const Weather& weather : kWeathers)
    if (outcome.fault.empty()) outcome = run_altered(subject, alteration, weather, slower);
  return outcome;
}

// The word that says that a copy to the host is there is written before it.
bool says_too_early(const std::vector<Entry>& program, const Alteration& alteration) {
  if (alteration.how != How::move) return false;
  const Kind next = next_kind(program, alteration.entry);
  return program[alteration.entry].kind == Kind::copy_in && (next == Kind::ready || next == Kind::done);
}

std::string describe(const std::vector<Entry>& program, const Alteration& alteration) {
  std::string text = std::to_string(alteration.entry) + " " + name_of(program[alteration.entry].kind);
  if (alteration.how == How::drop) return text + ": dropped";
  if (alteration.how == How::miscount) return text + ": miscounted";
  return text + ": behind the next, " + name_of(next_kind(program, alteration.entry));
}

bool can_be_miscounted(Kind kind) { return kind != Kind::record && kind != Kind::await; }

// On a full machine what does harm may be in time by chance in every weather, and what does none may come behind the deadline,
// until both are long beside the delays of the machine.
constexpr int kSlower[] = {1, 4, 16};

// The settings that lead to a program, and one kind of alterations of it.
struct Campaign {
  Subject subject;
  const char* path;
  std::pair<const char*, const char*> memory;
  How how;
};

std::string name_of_campaign(const ::testing::TestParamInfo<Campaign>& info) {
  const char* const how = info.param.how == How::drop ? "dropped" : info.param.how == How::move ? "moved" : "miscounted";
  const Subject subject = info.param.subject;
  const char* const what = subject == Subject::sums          ? "sums"
                           : subject == Subject::shared_sums ? "shared_sums"
                                                             : info.param.path;
  return std::string(what) + "_" + how;
}

std::vector<Campaign> every_campaign() {
  constexpr std::pair kBuffer("FCCL_CUDA_BUFFER", "4096"), kSlots("FCCL_CUDA_LANDING", "16384");
  std::vector<Campaign> campaigns;
  for (const How how : {How::drop, How::move, How::miscount})
    for (const Campaign& each :
         {Campaign{Subject::bounce, "bounce", kBuffer, how}, Campaign{Subject::steps, "host", kSlots, how},
          Campaign{Subject::steps, "peer", kSlots, how}, Campaign{Subject::sums, "peer", kSlots, how},
          Campaign{Subject::shared_sums, "peer", kSlots, how}})
      campaigns.push_back(each);
  return campaigns;
}

class CudaMutants : public ::testing::TestWithParam<Campaign> {
  const Setting path_{"FCCL_CUDA_PATH", GetParam().path};
  const Setting memory_{GetParam().memory.first, GetParam().memory.second};
};

// The weathers are right for both kinds of slots.
TEST_P(CudaMutants, that_do_harm_are_found_and_all_others_are_right) {
  const auto& [subject, path, memory, how] = GetParam();
  Outcome unaltered;
  for (const int slower : kSlower)
    if (slower == 1 || !unaltered.fault.empty()) unaltered = run_altered(subject, {}, false, slower);
  EXPECT_EQ(unaltered.fault, "");
  const std::vector<Entry>& program = unaltered.program;
  ASSERT_GT(program.size(), 12U);
  int found = 0, right = 0;
  for (size_t at = 0; at < program.size(); ++at) {
    if (how == How::miscount && !can_be_miscounted(program[at].kind)) continue;
    if (how == How::move && next_in_order(program, at) == program.size()) continue;
    const Alteration alteration{how, at};
    const bool harmless = is_right_of(subject, program, alteration);
    std::string fault;
    for (const int slower : kSlower)
      if (slower == 1 || fault.empty() != harmless)
        fault = run_altered(subject, alteration, says_too_early(program, alteration), slower).fault;
    std::printf("%-60s %s\n", describe(program, alteration).c_str(),
                fault.empty() ? (harmless ? "right, too" : "NOT FOUND") : fault.c_str());
    EXPECT_EQ(fault.empty(), harmless) << describe(program, alteration) << ": " << fault;
    ++(fault.empty() ? right : found);
  }
  std::printf("%d mutants found, %d right, too\n", found, right);
}

INSTANTIATE_TEST_SUITE_P(Of, CudaMutants, ::testing::ValuesIn(every_campaign()), name_of_campaign);

}  // namespace
}  // namespace fccl::core::testing
