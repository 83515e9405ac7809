// bits_of_calls CALLS [EXPECTED]: random collectives on four ranks, which are threads, and one checksum of every byte that they
// give. It needs nothing but the public interface, so it runs on any version of libfccl by LD_LIBRARY_PATH: versions that print
// the same checksum give the same bits. It fails if the checksum is not the expected one.
#include <fccl/fccl.h>

#include <array>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kRanks = 4;
constexpr size_t kMostElements = 20000;
constexpr std::array kTypes{fcclInt8,       fcclUint8,      fcclInt32,   fcclUint32,  fcclInt64,
                            fcclUint64,     fcclFloat16,    fcclFloat32, fcclFloat64, fcclBfloat16,
                            fcclFloat8e4m3, fcclFloat8e5m2, fcclInt16,   fcclUint16,  fcclBool};
constexpr std::array<size_t, kTypes.size()> kSizes{1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1, 2, 2, 1};
constexpr std::array kOperators{fcclSum, fcclProd, fcclMax, fcclMin, fcclAvg};

enum class What : uint8_t { all_gather, reduce_scatter, all_reduce, broadcast, reduce, gather, scatter, all_to_all };
constexpr int kWhats = 8;

// A call as all ranks know it.
struct Drawn {
  What what;
  size_t type;
  fcclRedOp_t op;
  size_t count;
  int root;
  bool in_place;
};

Drawn draw(std::mt19937_64& random) {
  Drawn call{};
  call.what = static_cast<What>(random() % kWhats);
  call.type = random() % kTypes.size();
  const bool is_bool = kTypes[call.type] == fcclBool;
  call.op = kOperators[random() % (kOperators.size() - (is_bool ? 1 : 0))];
  call.count = random() % 32 == 0 ? random() % kMostElements : random() % 600;
  call.root = static_cast<int>(random() % kRanks);
  call.in_place = random() % 2 == 0;
  return call;
}

void check(fcclResult_t result, const char* what) {
  if (result == fcclSuccess) return;
  std::fprintf(stderr, "bits_of_calls: %s failed: %s\n", what, fcclGetLastError(nullptr));
  std::exit(1);
}

class Rank {
 public:
  Rank(const fcclUniqueId& id, int rank) : rank_(rank), input_(kRanks * kMostElements * 8), output_(input_.size()) {
    check(fcclCommInitRank(&comm_, kRanks, id, rank), "fcclCommInitRank");
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  ~Rank() { fcclCommDestroy(comm_); }

  // Runs a call and returns the checksum of this rank's output.
  uint64_t run(const Drawn& call, uint64_t number) {
    const size_t bytes = call.count * kSizes[call.type];
    std::mt19937_64 random(number * kRanks + static_cast<uint64_t>(rank_));
    for (size_t i = 0; i < kRanks * bytes; i += sizeof(uint64_t)) {
      const uint64_t drawn = random();
      std::memcpy(&input_[i], &drawn, sizeof drawn);
    }
    std::memset(output_.data(), 0xa5, kRanks * bytes);
    return checksum(issue(call, bytes), has_output(call), bytes, call);
  }

 private:
  bool has_output(const Drawn& call) const {
    return (call.what != What::reduce && call.what != What::gather) || call.root == rank_;
  }
  static bool gives_all_blocks(What what) {
    return what == What::all_gather || what == What::gather || what == What::all_to_all;
  }

  // Returns where the output begins.
  const std::byte* issue(const Drawn& call, size_t bytes) {
    const fcclDataType_t type = kTypes[call.type];
    std::byte* const in = input_.data();
    std::byte* const out = call.in_place ? in : output_.data();
    std::byte* const own = in + static_cast<size_t>(rank_) * bytes;
    const size_t n = call.count;
    switch (call.what) {
      case What::all_gather:
        check(fcclAllGather(call.in_place ? own : in, out, n, type, comm_, nullptr), "fcclAllGather");
        return out;
      case What::reduce_scatter: {
        std::byte* const block = call.in_place ? own : out;
        check(fcclReduceScatter(in, block, n, type, call.op, comm_, nullptr), "fcclReduceScatter");
        return block;
      }
      case What::all_reduce:
        check(fcclAllReduce(in, out, n, type, call.op, comm_, nullptr), "fcclAllReduce");
        return out;
      case What::broadcast:
        check(fcclBroadcast(in, out, n, type, call.root, comm_, nullptr), "fcclBroadcast");
        return out;
      case What::reduce:
        check(fcclReduce(in, out, n, type, call.op, call.root, comm_, nullptr), "fcclReduce");
        return out;
      case What::gather:
        check(fcclGather(in, output_.data(), n, type, call.root, comm_, nullptr), "fcclGather");
        return output_.data();
      case What::scatter:
        check(fcclScatter(in, output_.data(), n, type, call.root, comm_, nullptr), "fcclScatter");
        return output_.data();
      case What::all_to_all:
        check(fcclAlltoAll(in, output_.data(), n, type, comm_, nullptr), "fcclAlltoAll");
        return output_.data();
    }
    return nullptr;
  }

  // FNV-1a.
  static uint64_t checksum(const std::byte* output, bool has_output, size_t bytes, const Drawn& call) {
    uint64_t sum = 0xcbf29ce484222325;
    const size_t length = !has_output ? 0 : bytes * (gives_all_blocks(call.what) ? kRanks : 1);
    for (size_t i = 0; i < length; ++i) sum = (sum ^ std::to_integer<uint64_t>(output[i])) * 0x100000001b3;
    return sum;
  }

  int rank_;
  fcclComm_t comm_ = nullptr;
  std::vector<std::byte> input_, output_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: bits_of_calls CALLS [EXPECTED]\n");
    return 2;
  }
  const uint64_t calls = std::strtoull(argv[1], nullptr, 10);
  fcclUniqueId id;
  check(fcclGetUniqueId(&id), "fcclGetUniqueId");
  std::array<uint64_t, kRanks> of_rank{};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      Rank own(id, rank);
      std::mt19937_64 random(2026);
      for (uint64_t i = 0; i < calls; ++i)
        of_rank[static_cast<size_t>(rank)] = of_rank[static_cast<size_t>(rank)] * 31 + own.run(draw(random), i);
    });
  for (std::thread& thread : threads) thread.join();
  uint64_t all = 0;
  for (const uint64_t each : of_rank) all = all * 31 + each;
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, all);
  std::printf("bits of %" PRIu64 " calls on %d ranks: %s\n", calls, kRanks, text);
  if (argc == 3 && std::string(argv[2]) != text) {
    std::fprintf(stderr, "bits_of_calls: expected %s\n", argv[2]);
    return 1;
  }
  return 0;
}
