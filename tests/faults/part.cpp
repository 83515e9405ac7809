// A rank's way through a run.
#include "faults/part.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>

#include "processes/parcel.h"

namespace fccl::core::faults {
namespace {

using namespace std::chrono_literals;
using testing::count_descriptors;
using testing::count_threads;
using testing::now_ns;
using testing::Parcel;
using testing::Recipe;
using testing::Route;
using testing::Trial;

// How long threads that end by themselves may take, and how long a rank waits for the others at the end.
constexpr auto kPatience = 5s;
// After this a thread that was about to enter a call is inside.
constexpr auto kUntilInside = 300ms;
// The file of an arena, which a process keeps until it ends.
constexpr int kKeptByArena = 1;
// Events that libfabric keeps open as long as the process lives.
constexpr int kKeptByNetwork = 2;

void write_text(std::span<char> into, const std::string& text) {
  const size_t length = std::min(text.size(), into.size() - 1);
  std::memcpy(into.data(), text.data(), length);
  into[length] = 0;
}

bool wait_until(const std::function<bool()>& done, std::chrono::milliseconds patience) {
  for (const auto end = std::chrono::steady_clock::now() + patience; !done(); std::this_thread::sleep_for(1ms))
    if (std::chrono::steady_clock::now() > end) return false;
  return true;
}

std::string list_descriptors() {
  std::string text;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    text += ' ';
    text += std::filesystem::read_symlink(entry.path(), gone).string();
  }
  return text;
}

}  // namespace

Part::Part(const Draw& draw, int rank, Board& board)
    : draw_(draw), rank_(rank), board_(board), descriptors_(count_descriptors()), threads_(count_threads()) {}

void Part::complain(const std::string& text) {
  if (report().complaint[0] == 0) write_text(report().complaint, text);
}

void Part::play() {
  if (join()) {
    warm_up();
    report().stage = Stage::at_moment;
    start_own_fault();
    meet_the_moment();
  }
  end();
}

bool Part::join() {
  if (!draw_.host_of.empty()) setenv("FCCL_HOST_ID", ("host" + std::to_string(draw_.host_of[rank_])).c_str(), 1);
  const fcclUniqueId id = testing::agree_on_id({rank_, draw_.ranks, board_.whiteboard});
  report().entered_ns = now_ns();
  report().stage = Stage::joining;
  if (draw_.moment == Moment::before_init && is_victim()) {
    if (draw_.fault == Fault::exit_silently) _exit(0);
    while (true) pause();
  }
  if (draw_.moment == Moment::in_init) start_own_fault();
  fcclConfig_t config = testing::config_of_tests();
  config.timeoutMs = static_cast<int>(draw_.deadline.count());
  config.initTimeoutMs = static_cast<int>(draw_.init_deadline.count());
  const fcclResult_t joined = fcclCommInitRankConfig(&comm_, draw_.ranks, id, rank_, &config);
  if (joined != fcclSuccess) {
    if (comm_ != nullptr) complain("init failed and gave a communicator all the same");
    fail_with(joined, fcclGetLastError(nullptr));
    return false;
  }
  report().had_comm = true;
  if (draw_.on_stream && fcclStreamCreate(&stream_) != fcclSuccess) complain("no stream");
  return true;
}

// In the place of each recipe everybody sends so many elements to everybody, itself too, in a group.
fcclResult_t Part::send_to_all(const std::vector<Recipe>& recipes) {
  report().entered_ns = now_ns();
  for (const Recipe& recipe : recipes) {
    std::vector<std::unique_ptr<Parcel>> sent, received;
    fcclResult_t result = fcclGroupStart();
    for (int peer = 0; peer < draw_.ranks; ++peer) {
      Route route{.from = rank_, .to = peer, .count = recipe.count, .dtype = recipe.dtype, .iteration = recipe.iteration};
      if (draw_.is_tagged) route.tag = route.from;
      sent.push_back(std::make_unique<Parcel>(route));
      std::swap(route.from, route.to);
      if (draw_.is_tagged) route.tag = route.from;
      received.push_back(std::make_unique<Parcel>(route));
      (void)sent.back()->send(comm_, stream_);
      if (draw_.receives_from_any() && peer % 2 == 1)
        (void)received.back()->receive_from_any(comm_, nullptr, stream_);
      else
        (void)received.back()->receive(comm_, stream_);
    }
    result = fcclGroupEnd();
    if (const fcclResult_t synchronized = fcclStreamSynchronize(stream_); result == fcclSuccess) result = synchronized;
    if (result != fcclSuccess) return result;
    for (const auto& parcel : received)
      if (const std::string fault = parcel->fault(); !fault.empty()) complain("wrong data: " + fault);
  }
  return fcclSuccess;
}

// Issues the recipes in order and waits for all; data of what succeeded is looked at.
fcclResult_t Part::call(const std::vector<Recipe>& recipes) {
  if (draw_.by_sends) return send_to_all(recipes);
  std::vector<std::unique_ptr<Trial>> trials;
  fcclResult_t result = fcclSuccess;
  for (const Recipe& recipe : recipes)
    trials.push_back(std::make_unique<Trial>(recipe, rank_, draw_.ranks, testing::Placement{draw_.host_of}));
  report().entered_ns = now_ns();
  if (draw_.in_group) result = fcclGroupStart();
  for (const auto& trial : trials)
    if (result == fcclSuccess) result = trial->issue(comm_, stream_);
  if (draw_.in_group)
    if (const fcclResult_t ended = fcclGroupEnd(); result == fcclSuccess) result = ended;
  if (stream_ != nullptr) {
    const fcclResult_t synchronized = fcclStreamSynchronize(stream_);
    if (result == fcclSuccess) result = synchronized;
  }
  if (result == fcclSuccess)
    for (const auto& trial : trials)
      if (const std::string fault = trial->fault(); !fault.empty()) complain("wrong data: " + fault);
  return result;
}

void Part::warm_up() {
  for (int i = 0; i < draw_.warm_calls && report().failed_ns == 0; ++i) {
    Recipe recipe = draw_.recipe;
    recipe.iteration = 1'000'000 + i;
    if (const fcclResult_t result = call({recipe}); result != fcclSuccess) fail_with(result, fcclGetLastError(comm_));
  }
}

void Part::meet_the_moment() {
  if (report().failed_ns != 0) return;
  if (draw_.fault == Fault::mismatch || draw_.fault == Fault::skip) return call_what_differs();
  if (draw_.fault == Fault::abort) return wait_until_aborted();
  switch (draw_.moment) {
    case Moment::idle:
      return ask_until_failure();
    case Moment::in_split:
      return split_until_failure();
    case Moment::at_end:
      return finish_in_disorder();
    default:
      return call_until_failure();
  }
}

// All ranks stop after the same call: rank 0 names it before it enters it, and nobody comes out before rank 0 has entered.
bool Part::is_last(int64_t iteration) { return board_.last_iteration <= iteration; }

void Part::call_until_failure() {
  for (int64_t i = 0;; ++i) {
    if (rank_ == 0 && board_.over && board_.last_iteration == INT64_MAX) board_.last_iteration = i;
    report().iteration = i;
    if (draw_.fault == Fault::exit_after_destroy && is_victim() && i == draw_.delay.count() / 10'000) leave_and_exit();
    Recipe first = draw_.recipe, second = draw_.recipe;
    first.iteration = static_cast<int>(2 * i);
    second.iteration = static_cast<int>(2 * i + 1);
    if (const fcclResult_t result = call({first, second}); result != fcclSuccess)
      return fail_with(result, fcclGetLastError(comm_));
    if (is_last(i)) return;
  }
}

void Part::call_what_differs() {
  std::vector<Recipe> calls{draw_.recipe};
  Recipe other = differing(draw_);
  if (draw_.fault == Fault::skip) {
    other = draw_.recipe;
    other.count = draw_.recipe.count + 1;
    if (draw_.recipe.collective == fcclCollBarrier) other = {.collective = fcclCollAllGather, .dtype = fcclInt8, .count = 1};
    if (is_victim()) calls.clear();
    calls.push_back(other);
  } else if (draw_.difference == Difference::order) {
    calls.push_back(other);
    if (is_victim()) std::swap(calls[0], calls[1]);
  } else if (is_victim()) {
    calls = {other};
  }
  const fcclResult_t result = call(calls);
  if (result == fcclSuccess) return complain("calls that differ succeeded");
  fail_with(result, fcclGetLastError(comm_));
}

// The rank after the victim does not come, so that the victim is inside a call when its other thread aborts: nobody may be
// about to enter one then.
void Part::wait_until_aborted() {
  if (rank_ == (draw_.victim + 1) % draw_.ranks) return ask_until_failure();
  const fcclResult_t result = call({draw_.recipe});
  if (!is_victim()) return fail_with(result, fcclGetLastError(comm_));
  const std::string cause = fcclGetLastError(nullptr);
  fault_.join();
  aborted_ = true;
  fail_with(result, cause);
}

void Part::ask_until_failure() {
  if (draw_.fault == Fault::exit_after_destroy) {
    if (is_victim()) {
      std::this_thread::sleep_for(draw_.delay);
      leave_and_exit();
    }
    // A rank that leaves is not a failure until another rank misses it.
    if (!wait_until([&] { return board_.gone.load(); }, 20s)) complain("nobody left");
    fcclResult_t state = fcclInternalError;
    if (fcclCommGetAsyncError(comm_, &state) != fcclSuccess || state != fcclSuccess)
      complain(std::string("a rank that has left is a failure already: ") + fcclGetLastError(comm_));
    ++board_.asked;
    wait_until([&] { return board_.asked == draw_.ranks - 1; }, 20s);
    const fcclResult_t result = call({draw_.recipe});
    return fail_with(result, fcclGetLastError(comm_));
  }
  fcclResult_t state = fcclSuccess;
  wait_until([&] { return fcclCommGetAsyncError(comm_, &state) != fcclSuccess || state != fcclSuccess; }, 30s);
  fail_with(state, fcclGetLastError(comm_));
}

// A split that fails is a failure of the parent, the first call of a part is not: the parent's is looked for then.
void Part::split_until_failure() {
  for (int64_t i = 0;; ++i) {
    if (rank_ == 0 && board_.over && board_.last_iteration == INT64_MAX) board_.last_iteration = i;
    report().iteration = i;
    report().entered_ns = now_ns();
    fcclComm_t made = nullptr;
    const int color = draw_.size == Size::zero ? 0 : rank_ % 2;
    const fcclResult_t result = fcclCommSplit(comm_, color, -rank_, &made, nullptr);
    if (result != fcclSuccess) return fail_with(result, fcclGetLastError(comm_));
    const fcclResult_t met = fcclBarrier(made, nullptr);
    const std::string part_cause = fcclGetLastError(nullptr);
    if (fcclCommDestroy(made) != fcclSuccess) complain("a part cannot be destroyed");
    // Only the part failed.
    if (met != fcclSuccess && draw_.fault == Fault::stop_for_long) return fail_with(met, part_cause);
    if (met != fcclSuccess && draw_.kills()) return ask_until_failure();
    if (met != fcclSuccess) complain("a part failed without a reason: " + part_cause);
    if (is_last(i)) return;
  }
}

void Part::finish_in_disorder() {
  std::vector<std::unique_ptr<Trial>> trials;
  if (stream_ != nullptr) {
    trials.push_back(std::make_unique<Trial>(draw_.recipe, rank_, draw_.ranks));
    (void)trials.back()->issue(comm_, stream_);
  }
  report().entered_ns = now_ns();
  std::this_thread::sleep_for(draw_.delay * ((rank_ * 5 + 3) % draw_.ranks) / draw_.ranks);
  const fcclResult_t finalized = fcclCommFinalize(comm_);
  if (finalized != fcclSuccess) return fail_with(finalized, fcclGetLastError(comm_));
}

// Brings this rank's own fault, unless it comes from the supervisor.
void Part::start_own_fault() {
  if (!is_victim() || fault_.joinable()) return;
  const auto later = [this](auto fault) {
    fault_ = std::thread([this, fault] {
      std::this_thread::sleep_for(draw_.delay);
      fault();
    });
  };
  if (draw_.fault == Fault::exit_silently) later([] { _exit(0); });
  if (draw_.fault == Fault::revoke)
    later([this] {
      report().fault_ns = now_ns();
      if (fcclCommRevoke(comm_, 0) != fcclSuccess) complain("revoke failed");
    });
  if (draw_.fault == Fault::abort)
    later([this] {
      std::this_thread::sleep_for(kUntilInside);
      report().fault_ns = now_ns();
      if (fcclCommAbort(comm_) != fcclSuccess) complain("abort failed");
    });
}

void Part::leave_and_exit() {
  if (stream_ != nullptr) fcclStreamDestroy(stream_);
  report().fault_ns = now_ns();
  if (fcclCommDestroy(comm_) != fcclSuccess) complain("destroy failed");
  _exit(0);
}

void Part::fail_with(fcclResult_t code, const std::string& cause) {
  report().failed_ns = now_ns();
  report().code = code;
  write_text(report().cause, cause);
  report().stage = Stage::failed;
  // After a stop perhaps only a part failed; after finalize every call is refused.
  const bool of_part = draw_.moment == Moment::in_split && draw_.fault == Fault::stop_for_long;
  if (comm_ != nullptr && !aborted_ && !of_part && draw_.moment != Moment::at_end) check_that_failure_stays();
}

void Part::check_that_failure_stays() {
  const std::string cause = report().cause.data();
  const fcclResult_t code = static_cast<fcclResult_t>(report().code.load());
  if (fcclBarrier(comm_, nullptr) != code) complain("the first failure's code did not stay");
  if (cause != fcclGetLastError(comm_)) complain(std::string("the first failure's cause became: ") + fcclGetLastError(comm_));
  fcclResult_t state = fcclSuccess;
  if (fcclCommGetAsyncError(comm_, &state) != fcclSuccess || state != code)
    complain("fcclCommGetAsyncError knows of another failure");
}

// Rank 0's process serves the id, so nobody leaves before all who live know their failure.
void Part::end() {
  if (fault_.joinable()) fault_.join();
  if (stream_ != nullptr) (void)fcclStreamDestroy(stream_);
  if (!aborted_ && fcclCommDestroy(comm_) != fcclSuccess) complain("destroy failed");
  check_leftovers();
  report().stage = Stage::done;
  const bool stopped_are_awaited = draw_.stops();
  const auto all_done = [&] {
    for (int rank = 0; rank < draw_.ranks; ++rank)
      if (board_.reports[rank].stage != Stage::done && (stopped_are_awaited || !draw_.kills() || !draw_.is_victim(rank)))
        return false;
    return true;
  };
  if (!wait_until(all_done, 30s)) complain("not every survivor came to its end");
}

// The bootstrap of an id whose ranks could not meet tells the late ones why for a while, by one thread in rank 0's process.
void Part::check_leftovers() {
  if (!report().had_comm && rank_ == 0) return;
  const int kept =
      (draw_.host_of.empty() ? 0 : kKeptByNetwork) + (draw_.recipe.buffers == testing::Buffers::own ? 0 : kKeptByArena);
  const auto clean = [&] { return count_descriptors() <= descriptors_ + kept && count_threads() <= threads_; };
  if (wait_until(clean, kPatience)) return;
  complain("after the end there are " + std::to_string(count_threads()) + " threads, before init " + std::to_string(threads_) +
           ", and " + std::to_string(count_descriptors()) + " descriptors, before init " + std::to_string(descriptors_) + ":" +
           list_descriptors());
}

}  // namespace fccl::core::faults
