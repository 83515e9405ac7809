// victim: a rank of a job that meets, checks collectives for a while and leaves, again and again, and says how that went.
//
//   victim FOLDER SECONDS ELEMENTS      RANK and WORLD_SIZE in the environment
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "fccl/fccl.hpp"

namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

// How long one communicator lives; another one follows, so that strangers find joining ranks, too.
constexpr std::chrono::milliseconds kRound{1500};

struct Tally {
  long rounds = 0;
  long calls = 0;
  long wrong = 0;
  std::string error;
};

struct Job {
  fs::path folder;
  Clock::time_point end;
  size_t elements = 0;
  int rank = 0;
  int ranks = 0;

  int32_t value(int of, size_t index, long call) const {
    return static_cast<int32_t>((of + 1) * static_cast<long>(index + 1) + call);
  }
};

// Rank 0's id, by a file of the round.
fccl::Result<fccl::UniqueId> meet(const Job& job, long round) {
  const fs::path file = job.folder / ("id." + std::to_string(round));
  if (job.rank == 0) {
    auto made = fccl::unique_id();
    if (!made) return made;
    const fs::path part = file.string() + ".part";
    std::ofstream(part, std::ios::binary).write(reinterpret_cast<const char*>(&*made), sizeof *made);
    fs::rename(part, file);
    return made;
  }
  while (!fs::exists(file)) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  fccl::UniqueId id{};
  std::ifstream(file, std::ios::binary).read(reinterpret_cast<char*>(&id), sizeof id);
  return id;
}

// One AllReduce and one AllGather; how many of the two gave a wrong element.
fccl::Result<long> check_calls(const Job& job, fccl::Communicator& communicator, long call) {
  static std::vector<int32_t> send(job.elements);
  static std::vector<int32_t> sum(job.elements);
  static std::vector<int32_t> all(job.elements * static_cast<size_t>(job.ranks));
  for (size_t i = 0; i < send.size(); ++i) send[i] = job.value(job.rank, i, call);
  sum.assign(sum.size(), -1);
  all.assign(all.size(), -1);
  if (auto done = communicator.all_reduce(send, sum, fccl::sum); !done) return done.error();
  if (auto done = communicator.all_gather(send, all); !done) return done.error();
  bool wrong_sum = false;
  bool wrong_all = false;
  for (size_t i = 0; i < send.size(); ++i) {
    int32_t expected = 0;
    for (int rank = 0; rank < job.ranks; ++rank) {
      expected += job.value(rank, i, call);
      wrong_all |= all[static_cast<size_t>(rank) * send.size() + i] != job.value(rank, i, call);
    }
    wrong_sum |= sum[i] != expected;
  }
  return long{wrong_sum} + long{wrong_all};
}

fccl::Result<void> run(const Job& job, Tally& tally) {
  for (bool goes_on = true; goes_on; ++tally.rounds) {
    auto id = meet(job, tally.rounds);
    if (!id) return id.error();
    auto communicator = fccl::Communicator::join(*id, job.rank, job.ranks);
    if (!communicator) return communicator.error();
    const auto round_ends = Clock::now() + kRound;
    // The ranks agree when to stop: 1 for this round, 2 for good.
    for (int32_t stop = 0; stop == 0;) {
      const auto now = Clock::now();
      const int32_t mine = now > job.end ? 2 : now > round_ends ? 1 : 0;
      if (auto done = communicator->all_reduce(std::span(&mine, 1), std::span(&stop, 1), fccl::max); !done) return done.error();
      const auto wrong = check_calls(job, *communicator, tally.calls);
      if (!wrong) return wrong.error();
      tally.wrong += *wrong;
      ++tally.calls;
      goes_on = stop < 2;
    }
  }
  return {};
}

}  // namespace

int main(int count, char** words) {
  if (count != 4 || !std::getenv("RANK") || !std::getenv("WORLD_SIZE")) {
    std::fprintf(stderr, "usage: RANK=R WORLD_SIZE=N victim FOLDER SECONDS ELEMENTS\n");
    return 2;
  }
  const Job job{.folder = words[1],
                .end = Clock::now() + std::chrono::milliseconds(static_cast<long>(std::atof(words[2]) * 1000)),
                .elements = static_cast<size_t>(std::atol(words[3])),
                .rank = std::atoi(std::getenv("RANK")),
                .ranks = std::atoi(std::getenv("WORLD_SIZE"))};
  Tally tally;
  if (auto ran = run(job, tally); !ran) tally.error = ran.error().message;
  for (char& c : tally.error)
    if (c == '"' || c == '\\' || c == '\n') c = ' ';
  std::printf("{\"rank\": %d, \"rounds\": %ld, \"calls\": %ld, \"wrong\": %ld, \"error\": \"%s\"}\n", job.rank, tally.rounds,
              tally.calls, tally.wrong, tally.error.c_str());
  return tally.error.empty() && tally.wrong == 0 ? 0 : 1;
}
