// The launcher's MPI as the measured library, so that both are timed by the same code.
#include <string>

#include "library.h"

namespace fccl::perf {
namespace {

class MpiLibrary : public Library {
 public:
  explicit MpiLibrary(const FcclLauncher& launcher) : launcher_(launcher) {}

  Result<void> choose(const ElementType&, const Operator& op) override {
    op_ = op.op;
    return {};
  }

  // MPI_Reduce_scatter_block in place leaves the result at the start of the buffer.
  Layout fit(const Collective& collective, const Layout& layout) const override {
    Layout fitted = layout;
    if (collective.collective == fcclCollReduceScatter) fitted.in_place_recv = 0;
    return fitted;
  }

  Result<void> start(const Collective& collective, const Operation& operation) override {
    const FcclPeerCall call{.collective = collective.collective,
                            .datatype = operation.send.datatype,
                            .op = static_cast<int>(op_),
                            .root = operation.root,
                            .count = operation.count,
                            .send = operation.send.data,
                            .recv = operation.recv.data};
    if (const int error = launcher_.call(&call))
      return Error{fcclInternalError, std::string(launcher_.version()) + " failed with error " + std::to_string(error)};
    return {};
  }

  Result<void> finish() override { return {}; }

 private:
  const FcclLauncher& launcher_;
  Op op_ = Op::sum;
};

}  // namespace

std::unique_ptr<Library> use_mpi(const FcclLauncher* launcher) { return std::make_unique<MpiLibrary>(*launcher); }

bool mpi_has(const FcclLauncher& launcher, const Collective& collective, const ElementType& type, const Operator& op) {
  const bool scaled = collective.reduces && op.scaled;
  return !scaled && collective.has_mpi_call && launcher.supports(collective.collective, type.datatype, static_cast<int>(op.op));
}

}  // namespace fccl::perf
