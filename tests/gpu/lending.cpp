// Sends handles and descriptors of device memory between ranks.
#include "lending.h"

#include <cstring>
#include <stdexcept>
#include <string>

namespace fccl::gpu {

void lend(Rank& rank, int to, const DeviceMemory& memory) {
  const IpcHandle handle = export_by_ipc(memory);
  rank.send(to, {reinterpret_cast<const char*>(handle.data()), handle.size()});
}

IpcMapping borrow_by_ipc(Rank& rank, int from) {
  const Packet packet = rank.receive(from);
  IpcHandle handle{};
  if (packet.bytes.size() != handle.size()) throw std::runtime_error("the lent bytes are not a handle of cudaIpc");
  std::memcpy(handle.data(), packet.bytes.data(), handle.size());
  return IpcMapping(handle);
}

void lend(Rank& rank, int to, const PhysicalMemory& memory) {
  const Descriptor descriptor = memory.descriptor();
  rank.send(to, std::to_string(memory.size()), descriptor.get());
}

PhysicalMemory borrow_by_descriptor(Rank& rank, int from) {
  const Packet packet = rank.receive(from);
  const Descriptor descriptor(packet.descriptor);
  return PhysicalMemory::import(descriptor.get(), std::stoull(packet.bytes));
}

}  // namespace fccl::gpu
