// The exports and imports of sharing.h for programs in Python, which call them through ctypes: 0, or 1 and a text of
// last_error.
#include <cstring>

#include "exports.h"
#include "sharing.h"

namespace {

using namespace fccl::gpu;

template <class Part>
int with_gpu(const Part& part) {
  return guarded([&] {
    open_gpu();
    part();
  });
}

void read_into(void* to, const void* from, size_t offset, size_t bytes) {
  const Stream stream = make_stream();
  GPU_CHECK(cudaMemcpyAsync(to, static_cast<const std::byte*>(from) + offset, bytes, cudaMemcpyDeviceToDevice, stream.get()));
  drain(stream, Deadline::in(10), "reading another process's memory");
}

}  // namespace

EXPORTED int lend_by_ipc(const void* pointer, void* handle, size_t* offset) {
  return with_gpu([&] {
    const IpcExport exported = export_by_ipc(pointer);
    std::memcpy(handle, exported.handle.data(), exported.handle.size());
    *offset = exported.offset;
  });
}

EXPORTED int read_by_ipc(const void* handle, size_t offset, void* to, size_t bytes) {
  return with_gpu([&] {
    IpcHandle given{};
    std::memcpy(given.data(), handle, given.size());
    const IpcMapping mapping(given);
    read_into(to, mapping.get(), offset, bytes);
  });
}

// The descriptor becomes the caller's, who closes it. `piece` and `offset`: the piece of memory behind it, and where the
// pointer lies.
EXPORTED int lend_by_descriptor(const void* pointer, int* descriptor, size_t* piece, size_t* offset) {
  return with_gpu([&] {
    PieceExport exported = export_piece(pointer);
    *piece = exported.bytes;
    *offset = exported.offset;
    *descriptor = exported.descriptor.release();
  });
}

// The descriptor stays the caller's.
EXPORTED int read_by_descriptor(int descriptor, size_t piece, size_t offset, void* to, size_t bytes) {
  return with_gpu([&] {
    const PhysicalMemory memory = PhysicalMemory::import(descriptor, piece);
    read_into(to, memory.get(), offset, bytes);
  });
}
