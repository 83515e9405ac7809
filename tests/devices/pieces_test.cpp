// The fake driver's memory in pieces, by which expandable segments and memory that is lent are tried: what CUDA's headers say
// of the functions that make, map and lend it.
#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "os/descriptor.h"
#include "sockets/socket.h"

namespace fccl::core {

namespace {

constexpr size_t kGrain = size_t{2} << 20;

template <class Function>
Function* driver(const char* name) {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Function*>(library == nullptr ? nullptr : ::dlsym(library, name));
}
#define FCCL_TEXT(name) #name
#define FCCL_NAME(name) FCCL_TEXT(name)
#define DRIVER(name) (driver<decltype(name)>(FCCL_NAME(name)))

CUmemAllocationProp on_gpu(bool lends) {
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.requestedHandleTypes = lends ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
  return wanted;
}

void open_gpu() {
  ASSERT_EQ(DRIVER(cuInit)(0), CUDA_SUCCESS);
  CUcontext context = nullptr;
  ASSERT_EQ(DRIVER(cuDevicePrimaryCtxRetain)(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(DRIVER(cuCtxSetCurrent)(context), CUDA_SUCCESS);
}

CUmemGenericAllocationHandle make(bool lends) {
  CUmemGenericAllocationHandle made = 0;
  const CUmemAllocationProp wanted = on_gpu(lends);
  EXPECT_EQ(DRIVER(cuMemCreate)(&made, kGrain, &wanted, 0), CUDA_SUCCESS);
  return made;
}

CUdeviceptr reserve(size_t bytes) {
  CUdeviceptr at = 0;
  EXPECT_EQ(DRIVER(cuMemAddressReserve)(&at, bytes, 0, 0, 0), CUDA_SUCCESS);
  return at;
}

CUresult let(CUdeviceptr at, size_t bytes) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return DRIVER(cuMemSetAccess)(at, bytes, &access, 1);
}

std::vector<std::byte> pattern(size_t bytes) {
  std::vector<std::byte> made(bytes);
  for (size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(i * 7 + i / 251);
  return made;
}

void expect_holds(CUdeviceptr at, const std::vector<std::byte>& wanted) {
  std::vector<std::byte> found(wanted.size());
  ASSERT_EQ(DRIVER(cuMemcpyDtoH)(found.data(), at, found.size()), CUDA_SUCCESS);
  EXPECT_TRUE(std::ranges::equal(found, wanted));
}

// Lends a piece, and is gone before the other process has borrowed it.
[[noreturn]] void lend_and_leave(int socket, const std::vector<std::byte>& bytes) {
  open_gpu();
  const CUmemGenericAllocationHandle memory = make(true);
  const CUdeviceptr at = reserve(kGrain);
  int lent = -1;
  const bool right =
      DRIVER(cuMemMap)(at, kGrain, 0, memory, 0) == CUDA_SUCCESS && let(at, kGrain) == CUDA_SUCCESS &&
      DRIVER(cuMemcpyHtoD)(at, bytes.data(), bytes.size()) == CUDA_SUCCESS &&
      DRIVER(cuMemExportToShareableHandle)(&lent, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == CUDA_SUCCESS;
  ::_exit(right && write_some(socket, "d", std::array{lent}).bytes == 1 ? 0 : 1);
}

// The first test: a fork of a process that has a driver has none.
TEST(Pieces, that_are_lent_outlive_the_process_that_made_them) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const Descriptor here(ends[0]), there(ends[1]);
  const std::vector<std::byte> bytes = pattern(kGrain);
  const pid_t maker = ::fork();
  if (maker == 0) lend_and_leave(there.get(), bytes);
  int status = -1;
  ASSERT_EQ(::waitpid(maker, &status, 0), maker);
  ASSERT_EQ(status, 0);
  open_gpu();
  char letter = 0;
  Descriptor lent;
  ASSERT_EQ(read_some(here.get(), {&letter, 1}, {&lent, 1}).bytes, 1U);
  ASSERT_TRUE(lent);
  CUmemGenericAllocationHandle borrowed = 0;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): CUDA wants the descriptor so.
  void* const as_pointer = reinterpret_cast<void*>(static_cast<intptr_t>(lent.get()));
  ASSERT_EQ(DRIVER(cuMemImportFromShareableHandle)(&borrowed, as_pointer, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_SUCCESS);
  const CUdeviceptr at = reserve(kGrain);
  ASSERT_EQ(DRIVER(cuMemMap)(at, kGrain, 0, borrowed, 0), CUDA_SUCCESS);
  ASSERT_EQ(let(at, kGrain), CUDA_SUCCESS);
  expect_holds(at, bytes);
}

TEST(Pieces, come_in_two_mebibytes_and_no_less) {
  open_gpu();
  size_t grain = 0;
  const CUmemAllocationProp wanted = on_gpu(false);
  ASSERT_EQ(DRIVER(cuMemGetAllocationGranularity)(&grain, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM), CUDA_SUCCESS);
  EXPECT_EQ(grain, kGrain);
  CUmemGenericAllocationHandle made = 0;
  EXPECT_EQ(DRIVER(cuMemCreate)(&made, 4096, &wanted, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(reserve(kGrain) % kGrain, 0U);
}

TEST(Pieces, are_memory_of_the_gpu_and_side_by_side_one) {
  open_gpu();
  const CUdeviceptr at = reserve(3 * kGrain);
  for (size_t i = 0; i < 2; ++i) ASSERT_EQ(DRIVER(cuMemMap)(at + i * kGrain, kGrain, 0, make(false), 0), CUDA_SUCCESS);
  const std::vector<std::byte> bytes = pattern(10'000);
  CUstream stream = nullptr;
  ASSERT_EQ(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const auto copy = [&](CUdeviceptr to) { return DRIVER(cuMemcpyAsync)(to, at + kGrain - 10'000, bytes.size(), stream); };
  EXPECT_NE(copy(at), CUDA_SUCCESS) << "before anybody was let";
  ASSERT_EQ(let(at, 2 * kGrain), CUDA_SUCCESS);
  ASSERT_EQ(DRIVER(cuMemcpyHtoD)(at + kGrain - 10'000, bytes.data(), bytes.size()), CUDA_SUCCESS);
  ASSERT_EQ(copy(at + kGrain - 30), CUDA_ERROR_INVALID_VALUE) << "it overlaps itself";
  ASSERT_EQ(copy(at + kGrain), CUDA_SUCCESS);
  ASSERT_EQ(DRIVER(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  expect_holds(at + kGrain, bytes);
  EXPECT_EQ(copy(at + 2 * kGrain - 5'000), CUDA_ERROR_INVALID_VALUE) << "a piece is missing there";
  unsigned type = 0;
  ASSERT_EQ(DRIVER(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at + 2 * kGrain - 1), CUDA_SUCCESS);
  EXPECT_EQ(type, CU_MEMORYTYPE_DEVICE);
}

TEST(Pieces, are_unmapped_whole_and_their_addresses_freed_when_empty) {
  open_gpu();
  const CUdeviceptr at = reserve(2 * kGrain);
  const CUmemGenericAllocationHandle memory = make(false);
  ASSERT_EQ(DRIVER(cuMemMap)(at, kGrain, 0, memory, 0), CUDA_SUCCESS);
  EXPECT_EQ(DRIVER(cuMemMap)(at, kGrain, 0, memory, 0), CUDA_ERROR_INVALID_VALUE) << "something is mapped there";
  ASSERT_EQ(let(at, kGrain), CUDA_SUCCESS);
  EXPECT_EQ(let(at, 2 * kGrain), CUDA_ERROR_INVALID_VALUE) << "nothing is mapped in the second half";
  ASSERT_EQ(DRIVER(cuMemRelease)(memory), CUDA_SUCCESS);
  EXPECT_EQ(DRIVER(cuMemRelease)(memory), CUDA_ERROR_INVALID_VALUE);
  const std::vector<std::byte> bytes = pattern(64);
  ASSERT_EQ(DRIVER(cuMemcpyHtoD)(at, bytes.data(), bytes.size()), CUDA_SUCCESS);
  expect_holds(at, bytes);
  EXPECT_EQ(DRIVER(cuMemAddressFree)(at, 2 * kGrain), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(DRIVER(cuMemFree)(at), CUDA_ERROR_INVALID_VALUE) << "cuMemAlloc did not make it";
  EXPECT_EQ(DRIVER(cuMemUnmap)(at, kGrain / 2), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(DRIVER(cuMemUnmap)(at, kGrain), CUDA_SUCCESS);
  EXPECT_EQ(DRIVER(cuMemAddressFree)(at, 2 * kGrain), CUDA_SUCCESS);
}

TEST(Pieces, are_lent_only_if_they_were_made_for_it) {
  open_gpu();
  int lent = -1;
  constexpr auto kDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  EXPECT_EQ(DRIVER(cuMemExportToShareableHandle)(&lent, make(false), kDescriptor, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(DRIVER(cuMemExportToShareableHandle)(&lent, make(true), kDescriptor, 0), CUDA_SUCCESS);
  EXPECT_GE(Descriptor(lent).get(), 0);
}

}  // namespace

}  // namespace fccl::core
