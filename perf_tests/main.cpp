// The program of each perf binary. FCCL_MEASURED is the namespace of the collective that this program measures. The file
// includes nothing, since it is compiled once for each collective.
namespace fccl::perf {

struct Collective;
int run(int argc, char** argv, const Collective& collective);

namespace FCCL_MEASURED {
extern const Collective kMeasured;
}  // namespace FCCL_MEASURED

}  // namespace fccl::perf

int main(int argc, char** argv) { return fccl::perf::run(argc, argv, fccl::perf::FCCL_MEASURED::kMeasured); }
