// LandedCalls: gathers and broadcasts of many sizes, and by which slots they went.
#pragma once

#include <string>
#include <vector>

#include "cuda/cuda_ranks.h"

namespace fccl::core::testing {

// Slots of one page, so that calls have many steps.
inline constexpr const char* kSmallSlots = "16384";

// The kind of slots, by its name in FCCL_CUDA_PATH, as it is called in metrics.
inline const char* name_in_metrics(const std::string& path) { return path == "host" ? "landed" : "peer"; }

// False under the thread sanitizer, which sees one process.
inline bool sees_processes() { return every_kind().back() == RanksAs::processes; }

// The calls of a collective that metrics show under this path.
uint64_t calls_by(const std::string& path_in_metrics, fcclComm_t comm, fcclColl_t collective);
// The bytes that metrics say a processor has copied for a collective.
uint64_t copied_in(fcclComm_t comm, fcclColl_t collective);
// Makes a communicator and calls of many sizes, which must be right, and have gone by slots of this kind; none for "bounce".
void expect_landed(CudaSeat& seat, const std::string& path);
// Kills rank 2 within a few such calls, once its GPU has done so many operations more; the others must hear who died in time.
// All ranks, which are processes, call it together.
void expect_end_by_death(CudaSeat& seat, fcclComm_t comm, const Recipe& recipe, uint64_t operations);
void expect_words(const std::string& text, const std::vector<std::string>& words);

}  // namespace fccl::core::testing
