// Checks tensors, and converts operators and factors.
#include "tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <type_traits>

#include "accelerator.h"
#include "errors.h"

namespace fccl::torch {
namespace {

std::optional<fcclDataType_t> type_of(at::ScalarType type) {
  switch (type) {
    case at::kChar:
      return fcclInt8;
    case at::kByte:
      return fcclUint8;
    case at::kShort:
      return fcclInt16;
    case at::kUInt16:
      return fcclUint16;
    case at::kInt:
      return fcclInt32;
    case at::kUInt32:
      return fcclUint32;
    case at::kLong:
      return fcclInt64;
    case at::kUInt64:
      return fcclUint64;
    case at::kHalf:
      return fcclFloat16;
    case at::kFloat:
      return fcclFloat32;
    case at::kDouble:
      return fcclFloat64;
    case at::kBFloat16:
      return fcclBfloat16;
    case at::kFloat8_e4m3fn:
      return fcclFloat8e4m3;
    case at::kFloat8_e5m2:
      return fcclFloat8e5m2;
    case at::kBool:
      return fcclBool;
    default:
      return std::nullopt;
  }
}

template <class Scalar>
Factor stored(double factor, const char* operation) {
  Factor result{};
  if constexpr (std::is_integral_v<Scalar>) {
    // The conversion is undefined outside the type's range. Both bounds are powers of two, so exact in double.
    using Limits = std::numeric_limits<Scalar>;
    TORCH_CHECK_VALUE(factor >= static_cast<double>(Limits::min()) && factor < std::ldexp(1.0, Limits::digits), operation,
                      ": the factor ", factor, " of PREMUL_SUM is not a value of the tensors' type");
    const auto value = static_cast<Scalar>(factor);
    std::memcpy(result.bytes.data(), &value, sizeof value);
  } else {
    const auto value = static_cast<Scalar>(static_cast<std::conditional_t<sizeof(Scalar) == 8, double, float>>(factor));
    std::memcpy(result.bytes.data(), &value, sizeof value);
  }
  return result;
}

// Stores the factor in the type that the library will multiply in.
Factor stored_as(fcclDataType_t type, double factor, const char* operation) {
  switch (type) {
    case fcclInt8:
      return stored<int8_t>(factor, operation);
    case fcclUint8:
      return stored<uint8_t>(factor, operation);
    case fcclInt16:
      return stored<int16_t>(factor, operation);
    case fcclUint16:
      return stored<uint16_t>(factor, operation);
    case fcclInt32:
      return stored<int32_t>(factor, operation);
    case fcclUint32:
      return stored<uint32_t>(factor, operation);
    case fcclInt64:
      return stored<int64_t>(factor, operation);
    case fcclUint64:
      return stored<uint64_t>(factor, operation);
    case fcclFloat16:
      return stored<at::Half>(factor, operation);
    case fcclBfloat16:
      return stored<at::BFloat16>(factor, operation);
    case fcclFloat8e4m3:
      return stored<at::Float8_e4m3fn>(factor, operation);
    case fcclFloat8e5m2:
      return stored<at::Float8_e5m2>(factor, operation);
    case fcclFloat32:
      return stored<float>(factor, operation);
    case fcclFloat64:
      return stored<double>(factor, operation);
    case fcclBool:
    case fcclNumTypes:
      break;
  }
  throw_not_implemented(c10::str(operation, " with a pre-multiplied sum of this type"));
}

const c10d::NCCLPreMulSumSupplement& supplement_of(const c10d::ReduceOp& op, const char* operation) {
  const auto* supplement = dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK_VALUE(supplement != nullptr, operation, ": PREMUL_SUM came without its factor");
  return *supplement;
}

// If the factor is on the tensors' device, the library reads it when the call runs.
Reduction premul_sum_of(const c10d::ReduceOp& op, fcclDataType_t type, const at::Tensor& operand, const char* operation) {
  const auto& supplement = supplement_of(op, operation);
  const at::Tensor& factor = supplement.tensor_factor;
  if (!factor.defined()) return {fcclSum, stored_as(type, supplement.double_factor, operation)};
  if (factor.device().is_cpu() || operand.device().is_cpu())
    return {fcclSum, stored_as(type, factor.item<double>(), operation)};
  TORCH_CHECK_VALUE(factor.numel() == 1, operation, ": the factor of PREMUL_SUM must be one number, got ", factor.sizes());
  return {fcclSum, std::nullopt, factor.detach().to(c10::toRealValueType(operand.scalar_type()))};
}

// Refusals of an operator by type are RuntimeErrors, as in Gloo.
void refuse_for_bool(fcclDataType_t type, const char* op, const char* operation) {
  TORCH_CHECK(type != fcclBool, operation, ": ", op, " of bool has no meaning: truth values have SUM, MAX and BOR, which",
              " are or, PRODUCT, MIN and BAND, which are and, and BXOR");
}

void refuse_for_floats(const at::Tensor& operand, const char* op, const char* operation) {
  TORCH_CHECK(!operand.is_floating_point() && !operand.is_complex(), operation, ": ", op, " of ", operand.scalar_type(),
              " has no meaning: BAND, BOR and BXOR are of integers and of bool");
}

const std::vector<at::Tensor>& one_list(const std::vector<std::vector<at::Tensor>>& lists, int size, const char* operation) {
  TORCH_CHECK_VALUE(lists.size() == 1 && lists[0].size() == static_cast<size_t>(size), operation,
                    ": expected one list of one tensor per rank (", size, "), got ", lists.size(), " lists",
                    lists.empty() ? std::string() : c10::str(", the first of ", lists[0].size(), " tensors"));
  return lists[0];
}

void check_like(const at::Tensor& tensor, const at::Tensor& like, const char* which, const char* operation) {
  TORCH_CHECK_VALUE(tensor.scalar_type() == like.scalar_type() && tensor.numel() == like.numel(), operation, ": ", which,
                    " must be like this rank's (", like.scalar_type(), like.sizes(), "), but one is ", tensor.scalar_type(),
                    tensor.sizes());
}

void check_sizes(const at::Tensor& whole, const at::Tensor& part, int size, const char* operation) {
  TORCH_CHECK_VALUE(whole.numel() == part.numel() * size, operation, ": the gathered tensor must have ", size,
                    " times (the number of ranks) the elements of one rank's, got ", whole.numel(), " and ", part.numel());
}

}  // namespace

void check_tensor(const at::Tensor& tensor, const char* operation) {
  TORCH_CHECK_VALUE(tensor.defined(), operation, ": the tensor is undefined");
  if (!tensor.device().is_cpu() && tensor.device().type() != accelerator())
    throw_not_implemented(c10::str(operation, " of a tensor on ", tensor.device()));
  if (tensor.layout() != at::kStrided) throw_not_implemented(c10::str(operation, " of a tensor of layout ", tensor.layout()));
  TORCH_CHECK_VALUE(!tensor.is_conj(), operation, ": the memory of a tensor for which is_conj() is true holds the conjugates",
                    " of its numbers; pass a tensor made by .resolve_conj()");
  TORCH_CHECK_VALUE(!tensor.is_neg(), operation, ": the memory of a tensor for which is_neg() is true holds the negatives",
                    " of its numbers; pass a tensor made by .resolve_neg()");
}

const at::Tensor& only(const std::vector<at::Tensor>& tensors, const char* operation) {
  TORCH_CHECK_VALUE(tensors.size() == 1, operation, ": expected one tensor, got ", tensors.size());
  check_tensor(tensors[0], operation);
  return tensors[0];
}

const std::vector<at::Tensor>& only_list(const std::vector<std::vector<at::Tensor>>& lists, const at::Tensor& like, int size,
                                         const char* operation) {
  for (const at::Tensor& tensor : one_list(lists, size, operation)) {
    check_tensor(tensor, operation);
    check_like(tensor, like, "every tensor of the list", operation);
  }
  return lists[0];
}

const std::vector<at::Tensor>& only_parts(const std::vector<std::vector<at::Tensor>>& lists, const at::Tensor& own, int rank,
                                          int size, const char* operation) {
  check_parts(one_list(lists, size, operation), own, size, operation);
  check_like(lists[0][rank], own, "the tensor of the list that stands for this rank", operation);
  return lists[0];
}

void check_whole(const at::Tensor& whole, const at::Tensor& part, int size, const char* operation) {
  check_tensor(whole, operation);
  check_tensor(part, operation);
  TORCH_CHECK_VALUE(whole.scalar_type() == part.scalar_type(), operation, ": input and output must have one type, got ",
                    whole.scalar_type(), " and ", part.scalar_type());
  check_sizes(whole, part, size, operation);
}

void check_summands(const at::Tensor& whole, const at::Tensor& part, int size, const char* operation) {
  const bool is_narrow = c10::isFloatingType(whole.scalar_type()) && whole.element_size() < sizeof(float);
  if (!is_narrow || part.scalar_type() != at::kFloat) return check_whole(whole, part, size, operation);
  check_tensor(whole, operation);
  check_tensor(part, operation);
  check_sizes(whole, part, size, operation);
}

void check_parts(const std::vector<at::Tensor>& tensors, const at::Tensor& like, int size, const char* operation) {
  TORCH_CHECK_VALUE(tensors.size() == static_cast<size_t>(size), operation, ": expected one tensor per rank (", size, "), got ",
                    tensors.size());
  for (const at::Tensor& tensor : tensors) {
    check_tensor(tensor, operation);
    TORCH_CHECK_VALUE(tensor.scalar_type() == like.scalar_type(), operation, ": all tensors must have one type, got ",
                      tensor.scalar_type(), " and ", like.scalar_type());
  }
}

std::vector<size_t> counts_of(const std::vector<at::Tensor>& tensors) {
  std::vector<size_t> counts;
  counts.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) counts.push_back(elements_of(tensor).count);
  return counts;
}

std::vector<size_t> counts_of_splits(const at::Tensor& tensor, const std::vector<int64_t>& splits, int size,
                                     const char* operation) {
  check_tensor(tensor, operation);
  const int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  const size_t elements = elements_of(tensor).count;
  if (splits.empty()) {
    TORCH_CHECK_VALUE(rows % size == 0, operation, ": without split sizes the first dimension (", rows,
                      ") must be a multiple of the number of ranks (", size, ")");
    return std::vector<size_t>(size, elements / size);
  }
  const int64_t sum = std::accumulate(splits.begin(), splits.end(), int64_t{0});
  const bool negative = std::any_of(splits.begin(), splits.end(), [](int64_t split) { return split < 0; });
  TORCH_CHECK_VALUE(splits.size() == static_cast<size_t>(size) && sum == rows && !negative, operation,
                    ": expected one split size per rank (", size, ") that add up to the first dimension (", rows, "), got ",
                    splits.size(), " that add up to ", sum, negative ? ", one of which is negative" : "");
  std::vector<size_t> counts;
  counts.reserve(splits.size());
  for (const int64_t split : splits) counts.push_back(rows == 0 ? 0 : elements / rows * split);
  return counts;
}

bool are_equal(const std::vector<size_t>& counts) {
  return std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end();
}

Elements elements_of(const at::Tensor& tensor) {
  if (const auto type = type_of(tensor.scalar_type())) return {*type, static_cast<size_t>(tensor.numel())};
  return {fcclUint8, tensor.nbytes()};
}

Elements operands_of(const at::Tensor& tensor, const c10d::ReduceOp& op, const char* operation) {
  if (type_of(tensor.scalar_type())) return elements_of(tensor);
  if (!tensor.is_complex()) throw_not_implemented(c10::str(operation, " with a reduction of ", tensor.scalar_type()));
  if (op.op_ != c10d::ReduceOp::SUM && op.op_ != c10d::ReduceOp::AVG && op.op_ != c10d::ReduceOp::PREMUL_SUM)
    throw_not_implemented(c10::str(operation, " with a reduction other than a sum of ", tensor.scalar_type()));
  return {*type_of(c10::toRealValueType(tensor.scalar_type())), 2 * static_cast<size_t>(tensor.numel())};
}

Reduction reduction_of(const c10d::ReduceOp& op, fcclDataType_t type, const at::Tensor& operand, const char* operation) {
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      return {fcclSum};
    case c10d::ReduceOp::AVG:
      refuse_for_bool(type, "avg", operation);
      return {fcclAvg};
    case c10d::ReduceOp::PRODUCT:
      return {fcclProd};
    case c10d::ReduceOp::MIN:
      return {fcclMin};
    case c10d::ReduceOp::MAX:
      return {fcclMax};
    case c10d::ReduceOp::PREMUL_SUM:
      refuse_for_bool(type, "premul_sum", operation);
      return premul_sum_of(op, type, operand, operation);
    case c10d::ReduceOp::BAND:
      refuse_for_floats(operand, "BAND", operation);
      return {fcclBand};
    case c10d::ReduceOp::BOR:
      refuse_for_floats(operand, "BOR", operation);
      return {fcclBor};
    case c10d::ReduceOp::BXOR:
      refuse_for_floats(operand, "BXOR", operation);
      return {fcclBxor};
    case c10d::ReduceOp::UNUSED:
      break;
  }
  throw_not_implemented(c10::str(operation, " with this ReduceOp"));
}

fcclResult_t with_operator(const Reduction& reduction, fcclDataType_t type, fcclComm_t comm,
                           const std::function<fcclResult_t(fcclRedOp_t)>& issue) {
  const bool on_device = reduction.device_factor.defined();
  if (!reduction.factor && !on_device) return issue(reduction.op);
  Factor factor = reduction.factor.value_or(Factor{});
  void* const scalar = on_device ? reduction.device_factor.data_ptr() : factor.bytes.data();
  const auto residence = on_device ? fcclScalarDevice : fcclScalarHostImmediate;
  fcclRedOp_t op = fcclSum;
  const fcclResult_t created = fcclRedOpCreatePreMulSum(&op, scalar, type, residence, comm);
  if (created != fcclSuccess) return created;
  const fcclResult_t issued = issue(op);
  const fcclResult_t destroyed = fcclRedOpDestroy(op, comm);
  return issued != fcclSuccess ? issued : destroyed;
}

std::optional<Block> as_one_block(const std::vector<at::Tensor>& tensors) {
  Block block{nullptr, 0};
  const at::Tensor* first = nullptr;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.numel() == 0) continue;
    if (first == nullptr) block.data = static_cast<char*>((first = &tensor)->data_ptr());
    if (!tensor.is_contiguous() || tensor.data_ptr() != block.data + block.bytes) return std::nullopt;
    // A copy on a device must not cross from one allocation into the next.
    if (!first->device().is_cpu() && !tensor.is_alias_of(*first)) return std::nullopt;
    block.bytes += tensor.nbytes();
  }
  return block;
}

at::Tensor staging_for(const std::vector<at::Tensor>& tensors) {
  if (!tensors[0].device().is_cpu()) {
    int64_t count = 0;
    for (const at::Tensor& tensor : tensors) count += tensor.numel();
    return at::empty({count}, at::TensorOptions(tensors[0].device()).dtype(tensors[0].scalar_type()));
  }
  size_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += tensor.nbytes();
  return at::empty({static_cast<int64_t>(bytes)}, at::kByte);
}

std::vector<Packing> packings_of(const std::vector<at::Tensor>& tensors, char* staging) {
  std::vector<Packing> packings;
  for (const at::Tensor& tensor : tensors) {
    packings.emplace_back(tensor, staging);
    staging += tensor.nbytes();
  }
  return packings;
}

bool overlap(const Block& one, const Block& other) {
  return one.data < other.data + other.bytes && other.data < one.data + one.bytes;
}

}  // namespace fccl::torch
