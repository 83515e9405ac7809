// A random sequence of collectives, and of groups of sends and receives, each compared with the written order of its result and
// with what MPI makes of the same input. Usage: mpirun -np N differential_mpi --seconds S [--seed N] [--only FCCLCOLL];
// all ranks run the sequence that the seed gives. Hosts are those of the ranks' names, or of FCCL_HOST_ID.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>
#include <type_traits>

#include "processes/exchange.h"
#include "processes/parcel.h"
#include "processes/trial.h"
#include "unit/kernels/reference.h"

namespace fccl::core::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostBytes = 12'000'000;

struct World {
  int rank = 0;
  int ranks = 1;
  Placement placement{};
};

// The hosts on which FCCL takes the ranks to be.
Placement find_placement(const World& world) {
  using Name = std::array<char, 256>;
  Name mine{};
  if (const char* id = std::getenv("FCCL_HOST_ID"))
    std::strncpy(mine.data(), id, mine.size() - 1);
  else
    ::gethostname(mine.data(), mine.size() - 1);
  std::vector<Name> names(static_cast<size_t>(world.ranks));
  MPI_Allgather(mine.data(), mine.size(), MPI_CHAR, names.data(), mine.size(), MPI_CHAR, MPI_COMM_WORLD);
  Placement placement;
  for (const Name& name : names) placement.host_of.push_back(static_cast<int>(std::ranges::find(names, name) - names.begin()));
  const char* wire = std::getenv("FCCL_WIRE_DTYPE");
  placement.wire_is_float32 = wire != nullptr && std::string_view(wire) == "float32";
  return placement;
}

MPI_Op mpi_op(ReduceOp op) {
  if (op == ReduceOp::min) return MPI_MIN;
  if (op == ReduceOp::prod) return MPI_PROD;
  if (op == ReduceOp::band) return MPI_BAND;
  if (op == ReduceOp::bor) return MPI_BOR;
  if (op == ReduceOp::bxor) return MPI_BXOR;
  return op == ReduceOp::max ? MPI_MAX : MPI_SUM;
}

bool has_8_bits(fcclDataType_t dtype) { return dtype == fcclFloat8e4m3 || dtype == fcclFloat8e5m2; }

bool is_float(fcclDataType_t dtype) {
  return dtype == fcclFloat16 || dtype == fcclBfloat16 || dtype == fcclFloat32 || dtype == fcclFloat64 || has_8_bits(dtype);
}

// Changes a recipe into one that MPI can do: no results of 8-bit floats, no bytes that mean true or false, and no products that
// leave the range of a float. Eight bytes of each element must find room.
Recipe known_to_mpi(Recipe recipe) {
  if (!reduces(recipe.collective)) return recipe;
  recipe.count = std::min(recipe.count, kMostBytes / 8);
  if (has_8_bits(recipe.dtype) && !recipe.widens) recipe.dtype = fcclBfloat16;
  if (recipe.dtype == fcclBool) recipe.dtype = fcclUint8;
  if (is_float(recipe.dtype) && recipe.op == ReduceOp::prod) recipe.op = ReduceOp::sum;
  return recipe;
}

// Counts and displacements as MPI takes them, in units of so many to an element.
std::vector<int> mpi_numbers(const std::vector<size_t>& of_blocks, size_t unit) {
  std::vector<int> numbers;
  for (const size_t number : of_blocks) numbers.push_back(static_cast<int>(number * unit));
  return numbers;
}

// Reduces with MPI, and returns what this rank gets of the result.
template <class T>
std::vector<T> mpi_reduce(const Recipe& recipe, const World& world, const std::vector<T>& send, MPI_Datatype type, MPI_Op op) {
  const int count = static_cast<int>(recipe.count);
  std::vector<T> recv(output_of_rank(recipe.counts(world.ranks), world.rank).total());
  if (recipe.collective == fcclCollReduceScatterV) {
    const std::vector<int> counts = mpi_numbers(input_of_rank(recipe.counts(world.ranks), world.rank).counts, 1);
    MPI_Reduce_scatter(send.data(), recv.data(), counts.data(), type, op, MPI_COMM_WORLD);
  }
  if (recipe.collective == fcclCollAllReduce) MPI_Allreduce(send.data(), recv.data(), count, type, op, MPI_COMM_WORLD);
  if (recipe.collective == fcclCollReduceScatter)
    MPI_Reduce_scatter_block(send.data(), recv.data(), count, type, op, MPI_COMM_WORLD);
  if (recipe.collective != fcclCollReduce) return recv;
  MPI_Reduce(send.data(), recv.data(), count, type, op, recipe.root, MPI_COMM_WORLD);
  return world.rank == recipe.root ? recv : std::vector<T>{};
}

// By way of 64 bits, because Open MPI's sums of 8 and 16 bits saturate. Unsigned sums and products wrap, and have the bits of
// signed ones.
template <class T>
std::string compare_integers(const Recipe& recipe, const World& world, const Trial& trial) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  const std::vector<std::byte> input = trial.input();
  const Scalar scalar = trial.factor_of(world.rank);
  const auto factor =
      static_cast<uint64_t>(static_cast<Wide>(recipe.op == ReduceOp::premul_sum ? stored_at<T>(&scalar.bits, 0) : T{1}));
  std::vector<Wide> send(input.size() / sizeof(T));
  for (size_t i = 0; i < send.size(); ++i)
    send[i] = static_cast<Wide>(static_cast<uint64_t>(stored_at<T>(input.data(), i)) * factor);
  const bool ordered = recipe.op == ReduceOp::min || recipe.op == ReduceOp::max;
  const auto wanted =
      mpi_reduce(recipe, world, send, std::is_signed_v<T> && ordered ? MPI_INT64_T : MPI_UINT64_T, mpi_op(recipe.op));
  for (size_t i = 0; i < wanted.size(); ++i) {
    auto result = static_cast<T>(wanted[i]);
    if (recipe.op == ReduceOp::avg) result = static_cast<T>(static_cast<Wide>(result) / static_cast<Wide>(world.ranks));
    if (stored_at<T>(trial.result().data(), i) != result) return "element " + std::to_string(i) + " is not MPI's";
  }
  return "";
}

double value_at(fcclDataType_t dtype, const void* bytes, size_t index) {
  switch (dtype) {
    case fcclFloat8e4m3:
      return decode(stored_at<uint8_t>(bytes, index), kFloat8e4m3);
    case fcclFloat8e5m2:
      return decode(stored_at<uint8_t>(bytes, index), kFloat8e5m2);
    case fcclFloat16:
      return decode(stored_at<uint16_t>(bytes, index), kFloat16);
    case fcclBfloat16:
      return decode(stored_at<uint16_t>(bytes, index), kBfloat16);
    case fcclFloat32:
      return stored_at<float>(bytes, index);
    default:
      return stored_at<double>(bytes, index);
  }
}

// The distance of 1 from the next number.
double epsilon_of(fcclDataType_t dtype) {
  switch (dtype) {
    case fcclFloat16:
      return 0x1p-10;
    case fcclBfloat16:
      return 0x1p-7;
    case fcclFloat32:
      return 0x1p-23;
    default:
      return 0x1p-52;
  }
}

std::string compare_floats(const Recipe& recipe, const World& world, const Trial& trial) {
  const std::vector<std::byte> input = trial.input();
  const Scalar scalar = trial.factor_of(world.rank);
  const double factor = recipe.op == ReduceOp::premul_sum ? value_at(recipe.dtype, &scalar.bits, 0) : 1;
  std::vector<double> values(input.size() / size_of(recipe.dtype)), magnitudes;
  for (size_t i = 0; i < values.size(); ++i) values[i] = factor * value_at(recipe.dtype, input.data(), i);
  for (const double value : values) magnitudes.push_back(std::fabs(value));
  const auto wanted = mpi_reduce(recipe, world, values, MPI_DOUBLE, mpi_op(recipe.op));
  const auto sizes = mpi_reduce(recipe, world, magnitudes, MPI_DOUBLE, MPI_SUM);
  const bool exact = recipe.op == ReduceOp::min || recipe.op == ReduceOp::max;
  const double divisor = recipe.op == ReduceOp::avg ? world.ranks : 1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double tolerance = exact ? 0 : 2 * world.ranks * epsilon_of(recipe.result_type()) * sizes[i] / divisor;
    const double got = value_at(recipe.result_type(), trial.result().data(), i);
    if (!(std::fabs(got - wanted[i] / divisor) <= tolerance))
      return "element " + std::to_string(i) + " is " + std::to_string(got) + ", MPI has " + std::to_string(wanted[i] / divisor);
  }
  return "";
}

std::string compare_moved(const Recipe& recipe, const World& world, const Trial& trial) {
  std::vector<std::byte> send = trial.input(), wanted(trial.result().begin(), trial.result().end());
  const BlocksOfBuffer &given = trial.input_blocks(), &taken = trial.output_blocks();
  const size_t size = size_of(recipe.dtype);
  const std::vector<int> sendcounts = mpi_numbers(given.counts, size), sdispls = mpi_numbers(given.offsets, size);
  const std::vector<int> recvcounts = mpi_numbers(taken.counts, size), rdispls = mpi_numbers(taken.offsets, size);
  const int bytes = static_cast<int>(recipe.count * size_of(recipe.dtype));
  switch (recipe.collective) {
    case fcclCollAllGather:
      MPI_Allgather(send.data(), bytes, MPI_BYTE, wanted.data(), bytes, MPI_BYTE, MPI_COMM_WORLD);
      break;
    case fcclCollGather:
      MPI_Gather(send.data(), bytes, MPI_BYTE, wanted.data(), bytes, MPI_BYTE, recipe.root, MPI_COMM_WORLD);
      break;
    case fcclCollScatter:
      MPI_Scatter(send.data(), bytes, MPI_BYTE, wanted.data(), bytes, MPI_BYTE, recipe.root, MPI_COMM_WORLD);
      break;
    case fcclCollAlltoAll:
      MPI_Alltoall(send.data(), bytes, MPI_BYTE, wanted.data(), bytes, MPI_BYTE, MPI_COMM_WORLD);
      break;
    case fcclCollAllGatherV:
      MPI_Allgatherv(send.data(), sendcounts[0], MPI_BYTE, wanted.data(), recvcounts.data(), rdispls.data(), MPI_BYTE,
                     MPI_COMM_WORLD);
      break;
    case fcclCollAlltoAllV:
      MPI_Alltoallv(send.data(), sendcounts.data(), sdispls.data(), MPI_BYTE, wanted.data(), recvcounts.data(), rdispls.data(),
                    MPI_BYTE, MPI_COMM_WORLD);
      break;
    case fcclCollBroadcast:
      if (world.rank == recipe.root) wanted = send;
      MPI_Bcast(wanted.data(), bytes, MPI_BYTE, recipe.root, MPI_COMM_WORLD);
      break;
    default:
      MPI_Barrier(MPI_COMM_WORLD);
  }
  // Gaps that MPI leaves alone hold FCCL's bytes here, so only the blocks can differ.
  const bool equal = wanted.empty() || std::memcmp(trial.result().data(), wanted.data(), wanted.size()) == 0;
  return equal ? "" : "the bytes are not MPI's";
}

std::string compare_with_mpi(const Recipe& recipe, const World& world, const Trial& trial) {
  if (!reduces(recipe.collective)) return compare_moved(recipe, world, trial);
  switch (recipe.dtype) {
    case fcclInt8:
      return compare_integers<int8_t>(recipe, world, trial);
    case fcclUint8:
      return compare_integers<uint8_t>(recipe, world, trial);
    case fcclInt16:
      return compare_integers<int16_t>(recipe, world, trial);
    case fcclUint16:
      return compare_integers<uint16_t>(recipe, world, trial);
    case fcclInt32:
      return compare_integers<int32_t>(recipe, world, trial);
    case fcclUint32:
      return compare_integers<uint32_t>(recipe, world, trial);
    case fcclInt64:
      return compare_integers<int64_t>(recipe, world, trial);
    case fcclUint64:
      return compare_integers<uint64_t>(recipe, world, trial);
    default:
      return compare_floats(recipe, world, trial);
  }
}

// Where this rank is, for the handler of the alarm: MPI does not say which of its calls a rank waits in.
std::atomic<int> step_reached{0};
std::atomic<const char*> step_is_in{"FCCL"};
constexpr unsigned kLongestStepSeconds = 40;

[[noreturn]] void tell_place(int) {
  std::array<char, 128> text{};
  const int length = std::snprintf(text.data(), text.size(), "process %d: step %d has lasted %u s, the rank is in %s\n",
                                   getpid(), step_reached.load(), kLongestStepSeconds, step_is_in.load());
  (void)!write(STDERR_FILENO, text.data(), static_cast<size_t>(length));
  std::abort();
}

std::string run_step(const Recipe& recipe, const World& world, fcclComm_t comm) {
  Trial trial(recipe, world.rank, world.ranks, world.placement);
  if (trial.issue(comm) != fcclSuccess) return describe(recipe) + ": " + fcclGetLastError(nullptr);
  if (auto fault = trial.fault(); !fault.empty()) return fault;
  step_is_in = "MPI, comparing a collective";
  if (auto fault = compare_with_mpi(recipe, world, trial); !fault.empty()) return describe(recipe) + ": " + fault;
  return "";
}

std::string run_exchange(const Exchange& exchange, const World& world, int step, fcclComm_t comm) {
  std::vector<std::unique_ptr<Parcel>> sent(exchange.routes.size()), received(exchange.routes.size());
  std::vector<int> sources(exchange.routes.size(), -9);
  fcclStream_t stream = nullptr;
  if (exchange.on_stream && fcclStreamCreate(&stream) != fcclSuccess) return "no stream";
  fcclGroupStart();
  for (const size_t i : order_of(exchange, world.rank, step)) {
    const Route& route = exchange.routes[i];
    if (route.to == world.rank) {
      received[i] = std::make_unique<Parcel>(route);
      exchange.is_of_crowd(i) ? received[i]->receive_from_any(comm, &sources[i], stream) : received[i]->receive(comm, stream);
    }
    if (route.from == world.rank) {
      sent[i] = std::make_unique<Parcel>(route);
      sent[i]->send(comm, stream);
    }
  }
  if (fcclGroupEnd() != fcclSuccess) return std::string("a group: ") + fcclGetLastError(nullptr);
  if (fcclStreamSynchronize(stream) != fcclSuccess) return std::string("a group: ") + fcclGetLastError(nullptr);
  fcclStreamDestroy(stream);
  if (auto fault = sort_crowd(exchange, sources, received); !fault.empty()) return fault;
  step_is_in = "MPI, comparing sends";
  std::vector<std::vector<std::byte>> wanted(exchange.routes.size());
  std::vector<MPI_Request> requests;
  for (size_t i = 0; i < exchange.routes.size(); ++i) {
    const Route& route = exchange.routes[i];
    const int bytes = static_cast<int>(route.bytes());
    wanted[i].resize(route.bytes());
    if (route.to == world.rank)
      MPI_Irecv(wanted[i].data(), bytes, MPI_BYTE, route.from, static_cast<int>(i), MPI_COMM_WORLD, &requests.emplace_back());
    if (route.from == world.rank)
      MPI_Isend(sent[i]->data(), bytes, MPI_BYTE, route.to, static_cast<int>(i), MPI_COMM_WORLD, &requests.emplace_back());
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  for (size_t i = 0; i < exchange.routes.size(); ++i) {
    if (!received[i]) continue;
    if (auto fault = received[i]->fault(); !fault.empty()) return fault;
    if (std::memcmp(received[i]->data(), wanted[i].data(), wanted[i].size()) != 0) return "the bytes are not MPI's";
  }
  return "";
}

// Ends all ranks, since one that stays behind would wait for ever.
[[noreturn]] void give_up(const World& world, uint64_t seed, int step, const std::string& fault) {
  std::printf("rank %d: seed %" PRIu64 ", step %d: %s\n", world.rank, seed, step, fault.c_str());
  std::printf("again: mpirun -np %d differential_mpi --seed %" PRIu64 " --steps %d\n", world.ranks, seed, step + 1);
  std::fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

struct Options {
  double seconds = 5;
  uint64_t seed = 0;
  int steps = -1;  // no matter how long they take
  int only = -1;   // an fcclColl_t; below zero: all, and groups
};

// The same on all ranks.
Recipe draw_recipe(std::mt19937_64& generator, const Options& options, const World& world, int step) {
  Recipe recipe;
  do recipe = known_to_mpi(random_recipe(generator, world.ranks, kMostBytes, step));
  while (options.only >= 0 && options.only != recipe.collective);
  return recipe;
}

int run(const Options& options, const World& world) {
  fcclUniqueId id{};
  if (world.rank == 0 && fcclGetUniqueId(&id) != fcclSuccess) give_up(world, options.seed, 0, fcclGetLastError(nullptr));
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  fcclComm_t comm = nullptr;
  if (fcclCommInitRank(&comm, world.ranks, id, world.rank) != fcclSuccess)
    give_up(world, options.seed, 0, fcclGetLastError(nullptr));
  std::signal(SIGALRM, tell_place);
  std::mt19937_64 generator(options.seed);
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(options.seconds * 1000));
  int step = 0;
  for (int go_on = 1; go_on != 0; ++step) {
    alarm(kLongestStepSeconds);
    step_reached = step;
    step_is_in = "FCCL";
    Recipe recipe = draw_recipe(generator, options, world, step);
    recipe.finite = true;
    const Exchange exchange = random_exchange(generator, world.ranks, step);
    const bool sends = generator() % 3 == 0 && options.only < 0;
    if (auto fault = sends ? run_exchange(exchange, world, step, comm) : run_step(recipe, world, comm); !fault.empty())
      give_up(world, options.seed, step, fault);
    go_on = options.steps < 0 ? Clock::now() < end : step + 1 < options.steps;
    step_is_in = "MPI, agreeing on the next step";
    // A rank stays in MPI until all have what it sent them: Open MPI sends long messages only while the sender is there.
    MPI_Allreduce(MPI_IN_PLACE, &go_on, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  }
  alarm(0);
  if (fcclCommDestroy(comm) != fcclSuccess) give_up(world, options.seed, step, fcclGetLastError(nullptr));
  const std::vector<int>& hosts = world.placement.host_of;
  if (world.rank == 0)
    std::printf("%d ranks on %zu hosts, seed %" PRIu64 ": %d steps agree with MPI\n", world.ranks,
                std::set(hosts.begin(), hosts.end()).size(), options.seed, step);
  return 0;
}

// Rank 0's seed holds for all.
Options read_options(int argc, char** argv) {
  Options options;
  options.seed = static_cast<uint64_t>(Clock::now().time_since_epoch().count()) % 1'000'000;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--seconds") options.seconds = std::atof(argv[i + 1]);
    if (name == "--seed") options.seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--steps") options.steps = std::atoi(argv[i + 1]);
    if (name == "--only") options.only = std::atoi(argv[i + 1]);
  }
  if (options.only >= 0 && !std::ranges::count(kEveryMover, options.only) && !std::ranges::count(kEveryReducer, options.only)) {
    std::fprintf(stderr, "--only %d: give the fcclColl_t of a collective that moves bytes or reduces\n", options.only);
    std::exit(2);
  }
  MPI_Bcast(&options.seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  return options;
}

}  // namespace
}  // namespace fccl::core::testing

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  fccl::core::testing::World world;
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.ranks);
  world.placement = fccl::core::testing::find_placement(world);
  const int status = fccl::core::testing::run(fccl::core::testing::read_options(argc, argv), world);
  MPI_Finalize();
  return status;
}
