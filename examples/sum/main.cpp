// Sums a vector over the ranks of an mpirun, after a wrong call that is refused and does no harm.
#include <mpi.h>

#include <cstdio>
#include <fccl/fccl.hpp>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  fccl::UniqueId id{};
  if (rank == 0) id = *fccl::unique_id();
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  fccl::Communicator communicator = *fccl::Communicator::join(id, rank, ranks);

  const fccl::Source nothing(nullptr, 1000, fcclFloat32);
  std::vector<float> sums(1000);
  const auto refused = communicator.all_reduce(nothing, sums, fccl::sum);
  if (refused) return 1;
  std::printf("rank %d: refused: %s\n", rank, refused.error().message.c_str());

  std::vector<float> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((rank + 1) * i);
  if (const auto summed = communicator.all_reduce(values, sums, fccl::sum); !summed) {
    std::fprintf(stderr, "rank %d: %s\n", rank, summed.error().message.c_str());
    return 1;
  }
  const int total = ranks * (ranks + 1) / 2;
  int wrong = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) wrong += sums[i] != static_cast<float>(total * i);
  std::printf("rank %d of %d: %zu sums, %d wrong\n", rank, ranks, sums.size(), wrong);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
