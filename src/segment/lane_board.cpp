// Writes and reads records word by word.
#include "segment/lane_board.h"

namespace fccl::core {

void CallRecord::write(const Value& value) {
  const SignatureWords words = words_of(value.signature);
  words_[0].store(value.number, std::memory_order_relaxed);
  words_[1].store(words.kind, std::memory_order_relaxed);
  words_[2].store(words.count, std::memory_order_relaxed);
  words_[3].store(value.scalar.bits, std::memory_order_relaxed);
  words_[4].store(words.counts, std::memory_order_relaxed);
}

CallRecord::Value CallRecord::read() const {
  return {words_[0].load(std::memory_order_relaxed),
          signature_of({words_[1].load(std::memory_order_relaxed), words_[2].load(std::memory_order_relaxed),
                        words_[4].load(std::memory_order_relaxed)}),
          {words_[3].load(std::memory_order_relaxed)}};
}

}  // namespace fccl::core
