// Trains a Llama on the ranks of an mpirun: MPI starts them and carries the unique id, fccl does the rest.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "data.h"
#include "training.h"

namespace {

using namespace trainer;

constexpr int kWrongSettings = 2;

// The data that a rank needs before it joins the others.
struct Prepared {
  Settings settings;
  torch::Tensor corpus;
  std::optional<Checkpoint> resumed;
};

// The message of rank 0 to the others.
struct Start {
  fccl::UniqueId id;
  std::time_t time;
};

Prepared prepare(const std::vector<std::string>& words, int ranks) {
  Prepared prepared{parse(words, ranks), {}, {}};
  const Settings& settings = prepared.settings;
  if (!settings.name.empty() && std::filesystem::exists(settings.runs / settings.name))
    throw SettingsError("--name " + settings.name + ": " + (settings.runs / settings.name).string() +
                        " is there already; choose another name");
  prepared.corpus = read_corpus(settings);
  prepared.resumed = find_checkpoint(settings);
  return prepared;
}

std::filesystem::path folder_of(const Settings& settings, int ranks, std::time_t time) {
  if (!settings.name.empty()) return settings.runs / settings.name;
  char moment[32];
  std::strftime(moment, sizeof moment, "%m%d-%H%M%S", std::localtime(&time));
  return settings.runs / (settings.model + "-cpp-" + std::to_string(ranks) + "x-" + moment);
}

void join_and_train(const Prepared& prepared, int rank, int ranks) {
  Start start{};
  if (rank == 0) start = {*fccl::unique_id(), std::time(nullptr)};
  MPI_Bcast(&start, sizeof start, MPI_BYTE, 0, MPI_COMM_WORLD);
  auto communicator = fccl::Communicator::join(start.id, rank, ranks);
  if (!communicator) throw std::runtime_error(communicator.error().message);
  const auto folder = folder_of(prepared.settings, ranks, start.time);
  trainer::train(prepared.settings, prepared.corpus, *communicator, folder, prepared.resumed);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (std::find(words.begin(), words.end(), "--help") != words.end()) {
    if (rank == 0) std::fputs(usage().c_str(), stdout);
    return MPI_Finalize();
  }

  Prepared prepared;
  std::string refusal;
  try {
    prepared = prepare(words, ranks);
  } catch (const std::exception& error) {
    refusal = error.what();
  }
  // Nobody joins unless all will; the first rank that cannot says why.
  int refusing = refusal.empty() ? ranks : rank;
  MPI_Allreduce(MPI_IN_PLACE, &refusing, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (refusing < ranks) {
    if (refusing == rank) std::fprintf(stderr, "fccl_trainer: %s\n", refusal.c_str());
    MPI_Finalize();
    return kWrongSettings;
  }
  try {
    join_and_train(prepared, rank, ranks);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return MPI_Finalize();
}
