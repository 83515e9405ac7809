// Makes staging buffers, and adds the copies to and from them.
#include "staging.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/grad_mode.h>

#include <memory>
#include <utility>

#include "errors.h"
#include "packing.h"

namespace fccl::torch {
namespace {

enum class Way { pack, unpack };

// Copies on CPU memory. The step that makes them owns them, and lives until the stream has run it.
struct Copies {
  std::vector<Packing> packings;
  Way way;
  fcclStream_t stream = nullptr;

  void perform() const {
    for (const Packing& packing : packings) way == Way::pack ? packing.pack() : packing.unpack();
  }
  static void perform_in_turn(void* user_data) {
    const auto& copies = *static_cast<Copies*>(user_data);
    const fcclResult_t before = fcclStreamQuery(copies.stream);
    if (before == fcclSuccess || before == fcclInProgress) copies.perform();
  }
};

Step host_copies(const Staging& staging, Way way) {
  const auto copies =
      std::make_shared<Copies>(Copies{packings_of(staging.tensors, static_cast<char*>(staging.buffer.data_ptr())), way});
  return [copies](fcclComm_t /*comm*/, fcclStream_t stream) {
    copies->stream = stream;
    if (stream != nullptr) return fcclLaunchHostFunc(stream, Copies::perform_in_turn, copies.get());
    copies->perform();
    return fcclSuccess;
  };
}

Step device_copies(const Staging& staging, Way way) {
  return [staging, way](fcclComm_t /*comm*/, fcclStream_t /*stream*/) {
    const at::NoGradGuard no_grad;
    int64_t begin = 0;
    for (const at::Tensor& tensor : staging.tensors) {
      const at::Tensor packed = staging.buffer.narrow(0, begin, tensor.numel()).view(tensor.sizes());
      begin += tensor.numel();
      way == Way::pack ? packed.copy_(tensor, /*non_blocking=*/true) : tensor.copy_(packed, /*non_blocking=*/true);
    }
    return fcclSuccess;
  };
}

void add_copies(Operation& operation, const Staging& staging, Way way) {
  operation.copies = true;
  const bool on_host = staging.buffer.device().is_cpu();
  operation.steps.push_back(on_host ? host_copies(staging, way) : device_copies(staging, way));
}

Target staged_target(Operation& operation, const std::vector<at::Tensor>& tensors) {
  const Staging staging = add_staging(operation, tensors);
  return {staging.block().data, staging};
}

}  // namespace

Staging add_staging(Operation& operation, const std::vector<at::Tensor>& tensors) {
  return {tensors, operation.staging.emplace_back(staging_for(tensors))};
}

void add_packing(Operation& operation, const Staging& staging) {
  add_copies(operation, staging, Way::pack);
  operation.packs = true;
}

void add_unpacking(Operation& operation, const Staging& staging) {
  for (const at::Tensor& tensor : staging.tensors) {
    if (!tensor.device().is_cpu() && at::has_internal_overlap(tensor) == at::MemOverlap::Yes)
      throw_not_implemented(c10::str(operation.title, " into a tensor on ", tensor.device(), " whose elements share memory"));
  }
  add_copies(operation, staging, Way::unpack);
}

void add_call(Operation& operation, Target target, Step call) {
  operation.call_at = operation.steps.size();
  operation.steps.push_back(std::move(call));
  if (target.staging) add_unpacking(operation, *target.staging);
}

Source readable_block(Operation& operation, const std::vector<at::Tensor>& tensors) {
  if (const auto block = as_one_block(tensors)) return {*block};
  const Staging staging = add_staging(operation, tensors);
  add_packing(operation, staging);
  return {staging.block(), staging};
}

Target writable_block(Operation& operation, const std::vector<at::Tensor>& tensors) {
  if (const auto block = as_one_block(tensors)) return {block->data};
  return staged_target(operation, tensors);
}

Target writable_whole(Operation& operation, const std::vector<at::Tensor>& tensors, const Block& input, size_t own_offset) {
  if (const auto block = as_one_block(tensors))
    if (input.data == block->data + own_offset || !overlap(input, *block)) return {block->data};
  return staged_target(operation, tensors);
}

Target writable_part(Operation& operation, const at::Tensor& output, const Block& whole, size_t own_offset) {
  if (const auto part = as_one_block({output}))
    if (part->data == whole.data + own_offset || !overlap(*part, whole)) return {part->data};
  return staged_target(operation, {output});
}

Target writable_apart(Operation& operation, const std::vector<at::Tensor>& tensors, const Block& input) {
  if (const auto block = as_one_block(tensors))
    if (!overlap(input, *block)) return {block->data};
  return staged_target(operation, tensors);
}

Target writable_in_place(const Source& source) { return {source.block.data, source.staging}; }

}  // namespace fccl::torch
