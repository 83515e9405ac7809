// Sums sparse tensors: the ranks tell each other where they have elements, and reduce the values at all of these places.
#include <ATen/SparseTensorImpl.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "backend.h"
#include "errors.h"

namespace fccl::torch {
namespace {

using c10d::OpType;

constexpr const char* kTitle = "fccl:sparse_all_reduce";
// Words by which a rank describes its tensor: number of elements, type, sparse dimensions, dimensions, sizes.
constexpr int64_t kMaxDimensions = 16;
constexpr int64_t kWords = 4 + kMaxDimensions;

at::SparseTensorImpl& sparse(const at::Tensor& tensor) {
  return *static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
}

void check_sparse(const std::vector<at::Tensor>& tensors, const c10d::ReduceOp& op) {
  TORCH_CHECK_VALUE(tensors.size() == 1, kTitle, ": expected one tensor, got ", tensors.size());
  const at::Tensor& tensor = tensors[0];
  if (!tensor.device().is_cpu()) throw_not_implemented(c10::str(kTitle, " of a tensor on ", tensor.device()));
  if (tensor.layout() != at::kSparse) throw_not_implemented(c10::str(kTitle, " of a tensor of layout ", tensor.layout()));
  TORCH_CHECK_VALUE(op.op_ == c10d::ReduceOp::SUM || op.op_ == c10d::ReduceOp::AVG || op.op_ == c10d::ReduceOp::PREMUL_SUM,
                    kTitle, ": an element that a rank does not have is zero, which has a meaning in SUM, AVG and PREMUL_SUM",
                    " alone; make the tensors dense for other operators");
  TORCH_CHECK_VALUE(tensor.dim() <= kMaxDimensions, kTitle, ": the tensor has ", tensor.dim(), " dimensions; there may be ",
                    kMaxDimensions);
}

at::Tensor words_of(const at::Tensor& coalesced) {
  std::vector<int64_t> words{coalesced._nnz(), static_cast<int64_t>(coalesced.scalar_type()), coalesced.sparse_dim(),
                             coalesced.dim()};
  words.insert(words.end(), coalesced.sizes().begin(), coalesced.sizes().end());
  words.resize(kWords);
  return at::tensor(words, at::kLong);
}

std::string text_of(const int64_t* words) {
  const at::IntArrayRef sizes(words + 4, std::clamp<int64_t>(words[3], 0, kMaxDimensions));
  return c10::str(static_cast<at::ScalarType>(words[1]), sizes, " with ", words[2], " sparse dimensions");
}

// Every rank compares the same words, so either all refuse or none does.
void check_alike(const at::Tensor& words) {
  const int64_t* const first = words.const_data_ptr<int64_t>();
  for (int64_t rank = 1; rank < words.size(0); ++rank) {
    const int64_t* const own = first + rank * kWords;
    TORCH_CHECK_VALUE(std::equal(own + 1, own + kWords, first + 1), kTitle,
                      ": the tensors of all ranks must be alike, but rank", " 0 brought ", text_of(first), " and rank ", rank,
                      " ", text_of(own));
  }
}

// Returns each element's indices as one number: the element's offset in the dense tensor. The numbers rise.
at::Tensor places_of(const at::Tensor& coalesced) {
  const at::Tensor indices = coalesced._indices();
  at::Tensor places = at::zeros({coalesced._nnz()}, at::kLong);
  for (int64_t d = 0; d < coalesced.sparse_dim(); ++d) places.mul_(coalesced.size(d)).add_(indices[d]);
  return places;
}

at::Tensor indices_of(at::Tensor places, const at::Tensor& like) {
  at::Tensor indices = at::empty({like.sparse_dim(), places.numel()}, at::kLong);
  for (int64_t d = like.sparse_dim(); d-- > 0;) {
    const int64_t size = std::max<int64_t>(like.size(d), 1);
    indices[d].copy_(places.remainder(size));
    places = places.div(size, "floor");
  }
  return indices;
}

// Returns the values of the tensor at these places, zero where it has no element.
at::Tensor values_at(const at::Tensor& places, const at::Tensor& own_places, const at::Tensor& coalesced) {
  std::vector<int64_t> sizes{places.numel()};
  const at::IntArrayRef dense = coalesced.sizes().slice(coalesced.sparse_dim());
  sizes.insert(sizes.end(), dense.begin(), dense.end());
  at::Tensor values = at::zeros(sizes, coalesced._values().options());
  return values.index_copy_(0, at::searchsorted(places, own_places), coalesced._values());
}

}  // namespace

at::Tensor Backend::gather_now(const at::Tensor& input, const std::vector<int64_t>& counts, std::chrono::milliseconds timeout) {
  at::Tensor all = at::empty({std::accumulate(counts.begin(), counts.end(), int64_t{0})}, at::kLong);
  Operation operation{kTitle, OpType::_ALLREDUCE_SPARSE, false, timeout, {input}, all.split_with_sizes(counts)};
  add_allgather(operation, operation.outputs, input);
  (void)run(std::move(operation));
  return all;
}

// The values go last and in a call of their own, so the sum equals that of dense tensors, and the call may run next to the
// caller.
Backend::WorkPtr Backend::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) {
  check_sparse(tensors, options.reduceOp);
  const at::NoGradGuard guard;
  const at::Tensor own = tensors[0].coalesce();
  // Both refuse bad arguments before anything is sent.
  const Elements elements = operands_of(own._values(), options.reduceOp, kTitle);
  (void)reduction_of(options.reduceOp, elements.type, own._values(), kTitle);

  const at::Tensor words =
      gather_now(words_of(own), std::vector<int64_t>(getSize(), kWords), options.timeout).view({getSize(), kWords});
  check_alike(words);
  std::vector<int64_t> counts(getSize());
  for (int rank = 0; rank < getSize(); ++rank) counts[rank] = words[rank][0].item<int64_t>();
  const at::Tensor own_places = places_of(own);
  const at::Tensor places = std::get<0>(at::_unique(gather_now(own_places, counts, options.timeout)));

  const at::Tensor values = values_at(places, own_places, own);
  Operation operation{kTitle, OpType::_ALLREDUCE_SPARSE, options.asyncOp, options.timeout, tensors, tensors, {values}};
  add_allreduce(operation, values, options.reduceOp);
  // This precedes the call, whose callbacks may look at the tensor: the call writes into this tensor's values.
  sparse(tensors[0]).set_indices_and_values_unsafe(indices_of(places, own), values);
  sparse(tensors[0]).set_coalesced(true);
  return run(std::move(operation));
}

}  // namespace fccl::torch
