// Turns transfers into text for messages.
#include "base/transfer.h"

#include <fmt/format.h>

#include "base/signature.h"

namespace fccl::core {

std::string describe(const TransferEnd& transfer) {
  const Envelope& envelope = transfer.envelope;
  std::string text = fmt::format("{} of {} {} {} ", name_of(transfer.counted_as()), envelope.count, name_of(envelope.dtype),
                                 transfer.direction == Direction::send ? "to" : "from");
  text += transfer.peer == FCCL_ANY_SOURCE ? "any rank" : fmt::format("rank {}", transfer.peer);
  if (envelope.tag != kUntagged) text += fmt::format(" with tag {}", envelope.tag);
  return text;
}

}  // namespace fccl::core
