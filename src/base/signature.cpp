// Turns signatures into text for messages.
#include "base/signature.h"

#include <fmt/format.h>

namespace fccl::core {

uint64_t hash_of(std::span<const size_t> counts) {
  uint64_t h = counts.size();
  for (const size_t count : counts) {
    h = (h ^ count) * 0x9e3779b97f4a7c15ULL;
    h ^= h >> 29;
  }
  return h;
}

const char* name_of(fcclColl_t collective) {
  if (is_known(collective)) return row_of(collective).name;
  return collective == fcclCollSend ? "Send" : collective == fcclCollRecv ? "Recv" : "?";
}

const char* name_of(Issuer issuer) {
  switch (issuer) {
    case Issuer::user:
      break;
    case Issuer::init:
      return "fcclCommInitRank";
    case Issuer::split:
      return "fcclCommSplit";
    case Issuer::grow:
      return "fcclCommGrow";
    case Issuer::first_call:
      return "the set-up of the first call on CUDA memory";
  }
  return "the user";
}

std::string describe(const Signature& s) {
  if (s.issuer != Issuer::user) return name_of(s.issuer);
  std::string text = name_of(s.collective);
  if (is_known(s.collective) && s.row().givers == Who::nobody) return text;
  if (is_reduction(s.collective)) text += fmt::format("({})", name_of(s.op));
  if (s.counts != 0)
    return text + fmt::format(" of {} {} in all, recvcounts with hash {:x}", s.count, name_of(s.dtype), s.counts);
  if (is_known(s.collective) && s.row().is_uneven()) return text + fmt::format(" of {}", name_of(s.dtype));
  text += fmt::format(" of {} {}", s.count + s.elsewhere, name_of(s.dtype));
  if (s.widens) text += fmt::format(" into {}", name_of(s.result_type()));
  if (is_rooted(s.collective)) text += fmt::format(" with root {}", s.root);
  return text;
}

}  // namespace fccl::core
