// AllGather ahead of use, ReduceScatter behind the backward pass, each on a stream of its own.
#include "sharding.h"

#include <utility>

namespace trainer {
namespace {

fcclDataType_t datatype_of(const torch::Tensor& tensor) {
  return tensor.scalar_type() == torch::kFloat64 ? fcclFloat64 : fcclFloat32;
}
fccl::Source source(const torch::Tensor& tensor) {
  return {tensor.const_data_ptr(), static_cast<size_t>(tensor.numel()), datatype_of(tensor)};
}
fccl::Target target(const torch::Tensor& tensor) {
  return {tensor.mutable_data_ptr(), static_cast<size_t>(tensor.numel()), datatype_of(tensor)};
}

// The parts of a row that have these shapes.
std::vector<torch::Tensor> views(const torch::Tensor& row, const std::vector<std::vector<int64_t>>& shapes) {
  std::vector<torch::Tensor> parts;
  int64_t begin = 0;
  for (const auto& shape : shapes) {
    const int64_t count = c10::multiply_integers(shape);
    parts.push_back(row.narrow(0, begin, count).view(shape));
    begin += count;
  }
  return parts;
}

}  // namespace

Sharding::Sharding(const Llama& model, fccl::Communicator& communicator, bool overlaps)
    : communicator_(communicator),
      overlaps_(overlaps),
      gathers_(*fccl::Stream::create()),
      reductions_(*fccl::Stream::create()) {
  const int64_t ranks = communicator.ranks(), rank = communicator.rank();
  for (int index = 0; index < model.layers(); ++index) {
    Layer layer;
    const torch::Tensor values = model.first_values(index);
    const auto dtype = values.scalar_type();
    layer.size = values.numel();
    const int64_t share = (layer.size + ranks - 1) / ranks;
    layer.shard = shard_memory_.zeros(share, dtype);
    layer.gradient = gradient_memory_.zeros(share, dtype);
    const int64_t begin = std::min(layer.size, rank * share), end = std::min(layer.size, begin + share);
    layer.shard.narrow(0, 0, end - begin).copy_(values.slice(0, begin, end));
    layer.row = row_memory_.zeros(share * ranks, dtype);
    layer.parameters = views(layer.row, model.parameters(index));
    for (torch::Tensor& parameter : layer.parameters) parameter.requires_grad_();
    CountedMemory::release(layer.row);
    layers_.push_back(std::move(layer));
  }
}

Sharding::~Sharding() {
  // The memory of calls that are under way must stay until they have ended, be it by a failure that was told before.
  static_cast<void>(gathers_.synchronize());
  static_cast<void>(reductions_.synchronize());
}

void Sharding::gather(int index) {
  if (overlaps_) begin_gathering(layer(index));
}

void Sharding::begin_gathering(Layer& layer) {
  row_memory_.renew(layer.row);
  must(communicator_.all_gather(source(layer.shard), target(layer.row), gathers_));
}

const std::vector<torch::Tensor>& Sharding::use(int index) {
  if (layer(index).row.storage().data() == nullptr) begin_gathering(layer(index));
  must(gathers_.synchronize());
  return layer(index).parameters;
}

void Sharding::release(int index) { CountedMemory::release(layer(index).row); }

void Sharding::expect_gradient(int index) {
  Layer& expecting = layer(index);
  expecting.row_gradient = row_gradient_memory_.zeros(expecting.row.numel(), expecting.row.scalar_type());
  std::vector<std::vector<int64_t>> shapes;
  shapes.reserve(expecting.parameters.size());
  for (const torch::Tensor& parameter : expecting.parameters) shapes.push_back(parameter.sizes().vec());
  const auto gradients = views(expecting.row_gradient, shapes);
  for (size_t i = 0; i < gradients.size(); ++i) expecting.parameters[i].mutable_grad() = gradients[i];
}

void Sharding::reduce(int index) {
  finish_reducing();
  Layer& reduced = layer(index);
  for (torch::Tensor& parameter : reduced.parameters) parameter.mutable_grad().reset();
  must(communicator_.reduce_scatter(source(reduced.row_gradient), target(reduced.gradient), fccl::avg, reductions_));
  reducing_ = index;
  if (!overlaps_) finish_reducing();
}

void Sharding::finish_reducing() {
  must(reductions_.synchronize());
  if (reducing_) layer(*reducing_).row_gradient.reset();
  reducing_.reset();
}

void Sharding::sum(torch::Tensor& values) { must(communicator_.all_reduce(source(values), target(values), fccl::sum)); }

Held Sharding::held() const {
  return {shard_memory_.most(), gradient_memory_.most(), row_memory_.most(), row_gradient_memory_.most()};
}

}  // namespace trainer
