// Refusal: why a simulated GPU did not do what it was asked to.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace fccl::core::simulated {

struct Refusal {
  enum class Why : uint8_t {
    // Misuse.
    not_current,     // the GPU is not the calling thread's
    invalid,         // an argument
    already_pinned,  // memory
    not_pinned,      // memory
    capturing,       // a queue that records a graph
    unsupported,     // by this GPU
    // Faults that a test asked for.
    injected,  // this call failed
    broken,    // the GPU did, some time before
  };
  Why why = Why::invalid;
  std::string sentence;

  bool is_misuse() const { return why != Why::injected && why != Why::broken; }
};

template <class T>
using Answer = tl::expected<T, Refusal>;

inline tl::unexpected<Refusal> refuse(Refusal::Why why, std::string sentence) {
  return tl::make_unexpected(Refusal{why, std::move(sentence)});
}

}  // namespace fccl::core::simulated
