// FCCL as the measured library.
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "encoding.h"
#include "gpu/gpu.h"
#include "library.h"
#include "run.h"

namespace fccl::perf {
namespace {

class FcclLibrary : public Library {
 public:
  FcclLibrary(Communicator communicator, std::optional<Stream> stream, const Gpu* gpu)
      : communicator_(std::move(communicator)), stream_(std::move(stream)), gpu_(gpu) {}

  ~FcclLibrary() override { static_cast<void>(drop_operator()); }

  Result<void> choose(const ElementType& type, const Operator& op) override {
    if (auto dropped = drop_operator(); !dropped) return dropped;
    if (!op.scaled) {
      op_ = op.op;
      return {};
    }
    const int number = scalar_of(communicator_.rank());
    Bits scalar = type.family == Family::floating ? encode(number, type.datatype) : static_cast<Bits>(number);
    fcclRedOp_t made = fcclSum;
    if (auto created =
            result_of(fcclRedOpCreatePreMulSum(&made, &scalar, type.datatype, fcclScalarHostImmediate, communicator_.handle()));
        !created)
      return created;
    made_ = made;
    op_ = static_cast<Op>(made);
    return {};
  }

  Result<fcclInitCost_t> init_cost() const override { return communicator_.init_cost(); }

  Result<Traffic> traffic(const Collective& collective) const override {
    Traffic all;
    if (auto added = add(collective.collective, all); !added) return added.error();
    if (collective.collective != fcclCollSend) return all;
    if (auto added = add(fcclCollRecv, all); !added) return added.error();
    return all;
  }

  Result<void> start(const Collective& collective, const Operation& operation) override {
    Operation chosen = operation;
    chosen.op = op_;
    if (stream_) chosen.stream = StreamRef(*stream_);
    if (gpu_) chosen.stream = StreamRef(gpu_->stream());
    return collective.start(communicator_, chosen);
  }

  Result<void> finish() override {
    if (gpu_) return finish_gpu();
    return stream_ ? stream_->synchronize() : Result<void>();
  }

 private:
  Result<void> add(fcclColl_t collective, Traffic& all) const {
    for (int path = 0; fcclMetricsPathName(path) != nullptr; ++path) {
      const auto place = static_cast<std::size_t>(path);
      if (all.calls.size() == place) all.calls.push_back(0);
      for (int size = 0; fcclMetricsLargestSize(size) != 0; ++size) {
        fcclCallMetrics_t metrics{};
        metrics.size = sizeof metrics;
        auto told = result_of(fcclCommGetCallMetrics(communicator_.handle(), collective, path, size, &metrics));
        if (!told) return told;
        all.calls[place] += metrics.calls;
        all.copied += metrics.copied;
      }
    }
    return {};
  }

  // A failure ends the programs of all calls, so the stream also becomes idle, and only the communicator knows the reason.
  Result<void> finish_gpu() {
    for (;;) {
      const auto done = gpu_->is_done();
      if (!done) return done.error();
      if (*done) return communicator_.async_error();
      std::this_thread::yield();
    }
  }

  Result<void> drop_operator() {
    const auto made = std::exchange(made_, std::nullopt);
    return made ? result_of(fcclRedOpDestroy(*made, communicator_.handle())) : Result<void>();
  }

  Communicator communicator_;
  std::optional<Stream> stream_;
  const Gpu* gpu_;
  std::optional<fcclRedOp_t> made_;
  Op op_ = Op::sum;
};

}  // namespace

Result<std::unique_ptr<Library>> join_fccl(const Run& run, int thread, const Gpu* gpu) {
  const Arguments& arguments = run.arguments;
  Options options;
  options.memory = gpu ? fcclMemoryCuda : fcclMemoryCpu;
  if (arguments.timeout_seconds > 0) options.timeout = std::chrono::seconds(arguments.timeout_seconds);
  auto communicator = Communicator::join(run.id, run.team.rank(thread), run.team.ranks(), options);
  if (!communicator) return communicator.error();
  std::optional<Stream> stream;
  if (!gpu && !arguments.null_stream()) {
    auto created = Stream::create();
    if (!created) return created.error();
    stream = *std::move(created);
  }
  return std::unique_ptr<Library>(std::make_unique<FcclLibrary>(*std::move(communicator), std::move(stream), gpu));
}

}  // namespace fccl::perf
