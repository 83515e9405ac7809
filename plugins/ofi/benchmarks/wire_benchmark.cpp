// Speed of the wire between hosts: the i-th ranks of all hosts join a lane, all lanes move bytes at once, and every byte is
// compared. Beside it, between two hosts, plain TCP connections do the same.
//
//   ./dev cluster 2x2 --rate 1gbit -- build/plugins/ofi/wire_benchmark build/libfccl_ofi.so [--bytes N] [--rows N] [--nics A,B]
//     [--own-nic] [--provider P] [--window N] [--slot N] [--stages N] [--slices N] [--spin] [--only
//     streams|gather|scatter|small]
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "meeting.h"
#include "plan/catalog.h"
#include "plan/price.h"
#include "streams.h"
#include "system/clock.h"
#include "system/wait.h"
#include "wire/phases.h"
#include "wire/plugin.h"

namespace {

using namespace fccl;
using fccl::benchmarks::Meeting;
using fccl::benchmarks::Streams;

constexpr int kSmallCalls = 2000;
constexpr std::chrono::milliseconds kSettle{100};
constexpr std::chrono::milliseconds kLeave{1000};
constexpr std::byte kPoison{0xa5};

struct Options {
  TransportRequest request{.provider = "tcp", .nics = {"eth0"}};
  std::string library;
  size_t bytes = size_t{4} << 20;  // of a rank's block
  int rows = 10;
  bool own_nic = false;  // rank i of a host uses NIC i alone
  bool spin = false;     // as where each rank has a core
  int slices = 1;
  long yield_for = 50;  // microseconds, of a wait for large messages
  std::string only;
  bool leave = false;  // one broadcast, whose root is gone at once
  WireLaneShape shape;
};

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(1);
}

void must(const Result<void>& result) {
  if (result) return;
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(1);
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text)
    if (c == ',')
      words.emplace_back();
    else
      words.back() += c;
  return words;
}

Options options_of(int count, char** arguments) {
  Options options;
  if (count > 1) options.library = arguments[1];
  for (int i = 2; i < count; ++i) {
    const std::string_view name = arguments[i];
    if (name == "--own-nic" || name == "--spin" || name == "--leave") {
      (name == "--spin" ? options.spin : name == "--leave" ? options.leave : options.own_nic) = true;
      continue;
    }
    const char* value = ++i < count ? arguments[i] : "";
    const long number = std::atol(value);
    if (name == "--bytes")
      options.bytes = static_cast<size_t>(number);
    else if (name == "--rows")
      options.rows = static_cast<int>(number);
    else if (name == "--nics")
      options.request.nics = words_of(value);
    else if (name == "--provider")
      options.request.provider = value;
    else if (name == "--window")
      options.shape.window = static_cast<int>(number);
    else if (name == "--slot")
      options.shape.slot_bytes = static_cast<size_t>(number);
    else if (name == "--stages")
      options.shape.stages = static_cast<int>(number);
    else if (name == "--slices")
      options.slices = static_cast<int>(number);
    else if (name == "--yield")
      options.yield_for = number;
    else if (name == "--only")
      options.only = value;
    else
      options.library.clear();
  }
  return options;
}

int algorithm_of(fcclColl_t collective) {
  for (size_t i = 0; i < plan::kCatalog<plan::Price>.size(); ++i)
    if (plan::kCatalog<plan::Price>[i].collective == collective) return static_cast<int>(i);
  return -1;
}

std::byte input_byte(int member, size_t i, uint64_t row) {
  const uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ULL + static_cast<uint64_t>(member) * 31 + row * 7;
  return static_cast<std::byte>(x >> 32);
}

// The i-th rank of this host, and what it does with those of the others.
class Column {
 public:
  Column(Meeting& meeting, const Options& options)
      : meeting_(meeting),
        options_(options),
        endpoint_(std::make_unique<Endpoint>(must(open_transport_of(options.library, options.request)))),
        members_(meeting.hosts()),
        me_(meeting.host()) {
    WireLaneShape shape = options.shape;
    shape.me = me_;
    for (int host = 0; host < members_; ++host) shape.ranks.push_back(host * meeting.local_ranks() + meeting.local_rank());
    lane_ = must(WireLane::open(*endpoint_, shape));
    const std::vector<Introduction> all = meeting.all_gather(lane_->introduction());
    std::vector<Introduction> column;
    for (const int rank : shape.ranks) column.push_back(all[static_cast<size_t>(rank)]);
    must(lane_->connect(column));
    block_.resize(options.bytes);
    blocks_.resize(options.bytes * static_cast<size_t>(members_));
  }

  void gather(uint64_t row) { run(fcclCollAllGather, block_.data(), blocks_.data(), options_.bytes, row); }
  void scatter(uint64_t row) { run(fcclCollReduceScatter, blocks_.data(), block_.data(), options_.bytes, row); }
  void small(uint64_t row) {
    for (int i = 0; i < kSmallCalls; ++i) run(fcclCollAllGather, block_.data(), blocks_.data(), 8, row);
  }
  void broadcast(uint64_t row) { run(fcclCollBroadcast, block_.data(), block_.data(), options_.bytes, row); }
  void streams(Streams& streams) {
    streams.exchange(block_.data(), blocks_.data() + size_t(1 - me_) * options_.bytes, options_.bytes);
  }

  void fill_block(uint64_t row) {
    for (size_t i = 0; i < block_.size(); ++i) block_[i] = input_byte(me_, i, row);
    std::ranges::fill(blocks_, kPoison);
  }
  void fill_blocks(uint64_t row) {
    for (size_t i = 0; i < blocks_.size(); ++i) blocks_[i] = input_byte(me_, i, row);
    std::ranges::fill(block_, kPoison);
  }
  void compare_broadcast(uint64_t row) const {
    for (size_t i = 0; i < block_.size(); ++i)
      if (block_[i] != input_byte(0, i, row)) refuse(i);
  }
  // The first `bytes` of each block that came from another host.
  void compare_blocks(uint64_t row, size_t bytes, size_t stride) const {
    for (int member = 0; member < members_; ++member)
      for (size_t i = 0; i < bytes && member != me_; ++i)
        if (blocks_[static_cast<size_t>(member) * stride + i] != input_byte(member, i, row)) refuse(i);
  }
  void compare_sums(uint64_t row) const {
    for (size_t i = 0; i < block_.size(); ++i) {
      unsigned sum = 0;
      for (int member = 0; member < members_; ++member)
        sum += static_cast<unsigned>(input_byte(member, static_cast<size_t>(me_) * options_.bytes + i, row));
      if (block_[i] != static_cast<std::byte>(sum)) refuse(i);
    }
  }
  void settle(std::chrono::milliseconds most) { endpoint_->settle(Deadline::after(most)); }
  void leave() {
    if (!endpoint_->await_taken(Deadline::after(kLeave))) fmt::print("left, though not all was taken\n");
    lane_.reset();
    endpoint_.reset();
  }

 private:
  [[noreturn]] static void refuse(size_t byte) {
    fmt::print(stderr, "byte {} is wrong\n", byte);
    std::exit(1);
  }

  void run(fcclColl_t collective, const void* send, void* recv, size_t count, uint64_t) {
    const int root = collective == fcclCollBroadcast ? lane_->rank_of(0) : -1;
    const Call call{{collective, fcclUint8, ReduceOp::sum, root, count}, send, recv, {}};
    const plan::Group group{members_, 0};
    const int algorithm = algorithm_of(collective);
    WireTask task = flat_task(call, number_++, group, me_, plan::kCatalog<plan::Price>[static_cast<size_t>(algorithm)].cut);
    task.reduce = reduce_kernel(fcclUint8, ReduceOp::sum);
    task.least_slices = options_.slices;
    const plan::Steps steps = plan::steps_of(algorithm, group, me_);
    task.steps = &steps;
    const bool by_mailbox = payload_bytes_of(task) <= lane_->payload_bytes();
    Phase phase = by_mailbox ? wire_mailbox(lane_->frame, *lane_, task) : wire_exchange(lane_->frame, *lane_, task);
    Poll poll = poll_of(*lane_);
    if (!by_mailbox) poll.yield_for = std::chrono::microseconds(options_.yield_for);
    if (!must(run_to_end(phase, {&Column::look, this}, !options_.spin, poll)).agreed())
      benchmarks::give_up("a peer made another call");
  }
  static Result<void> look(void* context, const Awaited& awaited) {
    if (auto failure = static_cast<Column*>(context)->lane_->failure_of(awaited.rank)) return fail(std::move(*failure));
    return {};
  }

  Meeting& meeting_;
  const Options& options_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<WireLane> lane_;
  int members_, me_;
  uint64_t number_ = 1;
  std::vector<std::byte> block_, blocks_;
};

double processor_ms() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
}

// One thing that is measured.
struct Subject {
  std::string_view name;
  std::function<void(uint64_t row)> prepare, run, compare;
  // Of each row: the slowest rank's time, and the processor's time of all.
  std::vector<double> ms, processor;
};

void measure(Meeting& meeting, Subject& subject, uint64_t row) {
  subject.prepare(row);
  meeting.barrier();
  const double used = processor_ms();
  const auto begin = Clock::now();
  subject.run(row);
  struct {
    double ms, processor;
  } mine{std::chrono::duration<double, std::milli>(Clock::now() - begin).count(), 0};
  meeting.barrier();
  mine.processor = processor_ms() - used;
  double slowest = 0, processor = 0;
  for (const auto& each : meeting.all_gather(mine)) {
    slowest = std::max(slowest, each.ms);
    processor += each.processor;
  }
  subject.compare(row);
  subject.ms.push_back(slowest);
  subject.processor.push_back(processor);
}

double quantile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))];
}

void report(Subject& subject, size_t calls, const char* unit, double scale) {
  const double each = scale / static_cast<double>(calls);
  fmt::print("{:8} median {:8.2f} {}, least {:8.2f}, most {:8.2f}; processor time of all ranks {:8.2f}\n", subject.name,
             quantile(subject.ms, 0.5) * each, unit, quantile(subject.ms, 0) * each, quantile(subject.ms, 1) * each,
             quantile(subject.processor, 0.5) * each);
}

[[noreturn]] void leave_at_once(const Meeting& meeting, Column& column) {
  const int root = 0;
  column.fill_block(0);
  column.broadcast(0);
  if (meeting.host() != root) column.fill_block(0);
  column.broadcast(1);
  const auto begin = Clock::now();
  if (meeting.host() == root) column.leave();
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  if (meeting.host() == root && ms > 300) fmt::print("left in {:.0f} ms\n", ms);
  if (meeting.host() != root) column.compare_broadcast(0);
  std::_Exit(0);
}

}  // namespace

int main(int count, char** arguments) {
  Options options = options_of(count, arguments);
  if (options.library.empty()) {
    fmt::print(stderr, "the first lines of this program's source say how it is called\n");
    return 2;
  }
  Meeting meeting;
  auto& nics = options.request.nics;
  if (options.own_nic) nics = {nics[static_cast<size_t>(meeting.local_rank()) % nics.size()]};
  Column column(meeting, options);
  if (options.leave) leave_at_once(meeting, column);
  std::unique_ptr<Streams> streams;
  if (meeting.hosts() == 2) streams = std::make_unique<Streams>(meeting, nics);

  const auto fill_block = [&](uint64_t row) { column.fill_block(row); };
  const auto all_blocks = [&](uint64_t row) { column.compare_blocks(row, options.bytes, options.bytes); };
  std::vector<Subject> subjects;
  if (streams) subjects.push_back({"streams", fill_block, [&](uint64_t) { column.streams(*streams); }, all_blocks, {}, {}});
  subjects.push_back({"gather", fill_block, [&](uint64_t row) { column.gather(row); }, all_blocks, {}, {}});
  subjects.push_back({"scatter",
                      [&](uint64_t row) { column.fill_blocks(row); },
                      [&](uint64_t row) { column.scatter(row); },
                      [&](uint64_t row) { column.compare_sums(row); },
                      {},
                      {}});
  subjects.push_back({"small",
                      fill_block,
                      [&](uint64_t row) { column.small(row); },
                      [&](uint64_t row) { column.compare_blocks(row, 8, 8); },
                      {},
                      {}});
  if (!options.only.empty()) std::erase_if(subjects, [&](const Subject& s) { return s.name != options.only; });
  // The first row is not counted: connections are made in it.
  for (int row = 0; row <= options.rows; ++row)
    for (Subject& subject : subjects) {
      measure(meeting, subject, static_cast<uint64_t>(row));
      if (row == 0) subject.ms.clear(), subject.processor.clear();
    }
  column.settle(kSettle);
  meeting.barrier();
  if (meeting.rank() != 0) return 0;
  for (Subject& subject : subjects)
    subject.name == "small" ? report(subject, kSmallCalls, "us", 1e3) : report(subject, 1, "ms", 1);
}
