// RightAlterations: the programs that are altered, and which alterations of them do no harm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/altered_gpu.h"

namespace fccl::core::testing {

// The program that is altered: that of an AllReduce by bounce, that of an AllGather in place by landing slots, that of a
// ReduceScatter by pair slots, or that of an AllReduce by them.
enum class Subject : uint8_t { bounce, steps, sums, shared_sums };

// Returns the kind of the next entry in order, behind which an entry is moved.
Entry::Kind next_kind(const std::vector<Entry>& program, size_t at);

// Returns true if an alteration is right, too, and at most slower: each implied edge, with the reason, stands in the source.
bool is_right_of(Subject subject, const std::vector<Entry>& program, const Alteration& alteration);

}  // namespace fccl::core::testing
