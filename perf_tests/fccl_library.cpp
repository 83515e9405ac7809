// FCCL as the measured library.
#include <chrono>
#include <optional>
#include <utility>

#include "encoding.h"
#include "library.h"

namespace fccl::perf {
namespace {

class FcclLibrary : public Library {
 public:
  FcclLibrary(Communicator communicator, std::optional<Stream> stream)
      : communicator_(std::move(communicator)), stream_(std::move(stream)) {}

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

  Result<void> start(const Collective& collective, const Operation& operation) override {
    Operation chosen = operation;
    chosen.op = op_;
    if (stream_) chosen.stream = StreamRef(*stream_);
    return collective.start(communicator_, chosen);
  }

  Result<void> finish() override { return stream_ ? stream_->synchronize() : Result<void>(); }

 private:
  Result<void> drop_operator() {
    const auto made = std::exchange(made_, std::nullopt);
    return made ? result_of(fcclRedOpDestroy(*made, communicator_.handle())) : Result<void>();
  }

  Communicator communicator_;
  std::optional<Stream> stream_;
  std::optional<fcclRedOp_t> made_;
  Op op_ = Op::sum;
};

}  // namespace

Result<std::unique_ptr<Library>> join_fccl(const Arguments& arguments, const Team& team, const UniqueId& id, int thread) {
  Options options;
  options.memory = fcclMemoryCpu;
  if (arguments.timeout_seconds > 0) options.timeout = std::chrono::seconds(arguments.timeout_seconds);
  auto communicator = Communicator::join(id, team.rank(thread), team.ranks(), options);
  if (!communicator) return communicator.error();
  std::optional<Stream> stream;
  if (!arguments.null_stream) {
    auto created = Stream::create();
    if (!created) return created.error();
    stream = *std::move(created);
  }
  return std::unique_ptr<Library>(std::make_unique<FcclLibrary>(*std::move(communicator), std::move(stream)));
}

}  // namespace fccl::perf
