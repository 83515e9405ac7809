// The way of a collective: issue, path, end; and the end of a communicator.
#include "communicator/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/check.h"
#include "communicator/worker.h"
#include "system/forks.h"

namespace fccl {
namespace {

// How long a rank that leaves waits until other hosts have taken what it sent.
constexpr std::chrono::milliseconds kTaking{500};
// Twice as long as leaders give those who wait for a rank of their own host.
constexpr std::chrono::milliseconds kBehindLeader{600};

constexpr std::chrono::microseconds kShortestPause{20};
constexpr std::chrono::microseconds kLongestPause{1000};

constexpr const char* kForked = "this process is a fork of the one that made the communicator: make a new one after fork()";

// Says while it lives that a thread is inside a call, for whoever ends the communicator to wait for.
class InCall {
 public:
  explicit InCall(std::atomic<bool>& flag) : flag_(flag) { flag_.store(true, std::memory_order_relaxed); }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;
  ~InCall() { flag_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool>& flag_;
};

// Asks now and then: a call that ends on its own thread tells nobody, since that would cost it more than a store.
template <class Condition>
void sleep_until(Condition holds) {
  for (auto pause = kShortestPause; !holds(); pause = std::min(2 * pause, kLongestPause)) std::this_thread::sleep_for(pause);
}

template <size_t... lane>
std::array<LaneQueue, kLanes> queues_of(const std::shared_ptr<Segment>& segment, int local, const std::vector<int>& ranks_here,
                                        std::index_sequence<lane...>) {
  return {LaneQueue(segment, static_cast<LaneId>(lane), local, ranks_here)...};
}

}  // namespace

Communicator::Communicator(const CreateOptions& options, int rank, std::unique_ptr<Columns> columns, std::vector<Peer> peers,
                           const std::shared_ptr<Segment>& segment)
    : options_(options),
      rank_(rank),
      ranks_(static_cast<int>(peers.size())),
      timeout_(options.settings.timeout),
      forks_(forks()),
      columns_(std::move(columns)),
      segment_(segment),
      control_(std::make_shared<Control>(options.name, rank, std::move(peers), segment)),
      lanes_(queues_of(segment, columns_->local(), ranks_here(), std::make_index_sequence<kLanes>())) {}

std::vector<int> Communicator::ranks_here() const {
  const std::span<const int> here = columns_->ranks_of(columns_->host());
  return {here.begin(), here.end()};
}

Communicator::~Communicator() {
  if (!check_own()) {
    leave_network_alone();
    return;
  }
  sleep_until([this] { return is_idle() && finalizing_.load(std::memory_order_acquire) == 0; });
  // What TCP still has on its way when this process ends may be dropped; while others hold the endpoint it stays.
  if (endpoint_.use_count() == 1 && !control_->has_failed()) endpoint_->await_taken(Deadline::after(kTaking));
  control_->leave();
  if (link_) HostLink::retire(std::move(link_), timeout_);
}

// In a fork, what goes between hosts is the parent's: to close it here would close it there.
void Communicator::leave_network_alone() {
  (void)link_.release();
  for (LaneQueue& lane : lanes_)
    if (lane.span) (void)lane.span->crossing.release();
  if (endpoint_) new std::shared_ptr<Endpoint>(std::move(endpoint_));
}

Result<void> Communicator::run(const Call& call, Stream* stream) {
  const InCall inside(in_call_);
  FCCL_TRY(check_usable());
  return issue(call, stream);
}

Result<void> Communicator::issue(const Call& call, Stream* stream) {
  const Signature& signature = call.signature;
  LaneQueue& lane = lanes_[lane_of(signature.collective)];
  const bool here_and_now = stream == nullptr && lane.is_idle();
  // A number and a turn on the lane cannot be given back.
  Result<Stream*> queue = here_and_now ? nullptr : queue_for(stream);
  if (!queue) return fail(std::move(queue).error());
  const Task task{call, number_++, is_reduction(signature.collective) ? reduce_kernel(signature.dtype, signature.op) : nullptr};
  const Surroundings around{*control_, statistics_, crowded_, lanes_};
  if (here_and_now) return IssuedCall(around, lane, task, patience()).run();
  (*queue)->enqueue(std::make_unique<IssuedCall>(around, lane, task, patience()));
  return stream == nullptr ? blocking_->synchronize() : Result<void>{};
}

// Creation has one deadline for all that it waits for. A leader may wait for other hosts: it speaks before its host does.
std::chrono::milliseconds Communicator::patience() const {
  if (!creation_ends_) return timeout_;
  const std::chrono::milliseconds left(std::max(1, creation_ends_->remaining_ms()));
  return columns_->hosts() > 1 && columns_->local() > 0 ? left + kBehindLeader : left;
}

// The user's stream, or the one for blocking calls that find their lane at work.
Result<Stream*> Communicator::queue_for(Stream* stream) {
  if (stream != nullptr) {
    FCCL_TRY(stream->check_usable());
    return stream;
  }
  if (Worker::is_this_thread())
    return fail(fcclInvalidUsage, "a host function may not wait for a collective whose lane still has operations of streams");
  if (!blocking_) {
    auto made = Stream::make();
    if (!made) return fail(std::move(made).error());
    blocking_ = std::move(*made);
  }
  return blocking_.get();
}

Result<void> Communicator::check_own() const {
  if (forks_ != forks()) [[unlikely]]
    return fail(fcclInvalidUsage, kForked);
  return {};
}

Result<void> Communicator::check_usable() const {
  FCCL_TRY(check_own());
  if (finalized_.load(std::memory_order_relaxed)) [[unlikely]]
    return fail(fcclInvalidUsage, "the communicator has been finalized: no call may follow but fcclCommDestroy");
  if (control_->has_failed()) [[unlikely]]
    if (auto failed = control_->failure()) return fail(std::move(*failed));
  return {};
}

// The thread that is inside a call first, so that what it has issued is seen.
bool Communicator::is_idle() const {
  return !in_call_.load(std::memory_order_acquire) && std::ranges::all_of(lanes_, &LaneQueue::is_idle);
}

// Calls are refused at once, so that one after the other does not keep it waiting.
Result<void> Communicator::finalize() {
  FCCL_TRY(check_own());
  finalizing_.fetch_add(1, std::memory_order_relaxed);
  finalized_.store(true, std::memory_order_relaxed);
  // A call that has not seen it has shown by then that it is inside.
  std::this_thread::sleep_for(kShortestPause);
  sleep_until([this] { return is_idle(); });
  control_->leave();
  const std::optional<Error> failed = control_->failure();
  finalizing_.fetch_sub(1, std::memory_order_release);
  if (failed) return fail(*failed);
  return {};
}

Result<void> Communicator::revoke() {
  FCCL_TRY(check_own());
  (void)control_->raise({fcclAborted, fmt::format("rank {} aborted the communicator", rank_)});
  return {};
}

void Communicator::abort() {
  if (revoke()) sleep_until([this] { return is_idle() && finalizing_.load(std::memory_order_acquire) == 0; });
}

const char* Communicator::last_error() { return check_own() ? control_->failure_text() : kForked; }

Result<std::unique_ptr<Communicator>> Communicator::split(int color, int key, const CreateOptions& options) {
  const InCall inside(in_call_);
  FCCL_TRY(check_usable());
  return make_part(color, key, options);
}

std::optional<Error> Communicator::async_error() {
  control_->look_for_deaths();
  return control_->failure();
}

Result<fcclRedOp_t> Communicator::create_operator(fcclDataType_t dtype, Scalar scalar) {
  size_t index = 0;
  while (index < factors_.size() && factors_[index]) ++index;
  if (index == factors_.size()) factors_.emplace_back();
  factors_[index] = Factor{dtype, scalar};
  return static_cast<fcclRedOp_t>(fcclNumOps + index);
}

// Its place among the factors.
Result<size_t> Communicator::find_factor(fcclRedOp_t op) const {
  const size_t index = static_cast<size_t>(op) - fcclNumOps;
  if (op >= fcclNumOps && index < factors_.size() && factors_[index]) return index;
  return fail(fcclInvalidArgument,
              fmt::format("{} is no operator that fcclRedOpCreatePreMulSum made for this communicator", static_cast<int>(op)));
}

Result<void> Communicator::destroy_operator(fcclRedOp_t op) {
  const Result<size_t> index = find_factor(op);
  if (!index) return fail(index.error());
  factors_[*index].reset();
  return {};
}

Result<Scalar> Communicator::factor_of(fcclRedOp_t op, fcclDataType_t dtype) const {
  const Result<size_t> index = find_factor(op);
  if (!index) return fail(index.error());
  const Factor& factor = *factors_[*index];
  if (factor.dtype == dtype) return factor.scalar;
  return fail(fcclInvalidArgument,
              fmt::format("the operator was made for {}, the call is of {}", name_of(factor.dtype), name_of(dtype)));
}

}  // namespace fccl
