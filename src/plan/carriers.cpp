// The overlaps of two ways to cut a chunk into equal parts.
#include "plan/carriers.h"

#include <algorithm>

namespace fccl::plan {

std::vector<Piece> pieces(int from_ranks, int to_ranks) {
  std::vector<Piece> all;
  for (int begin = 0; begin < from_ranks * to_ranks; begin = all.back().end) {
    const int from = begin / to_ranks;
    const int to = begin / from_ranks;
    all.push_back({from, to, begin, std::min((from + 1) * to_ranks, (to + 1) * from_ranks)});
  }
  return all;
}

size_t first_element(size_t elements, int part, int parts) { return elements / parts * part + elements % parts * part / parts; }

}  // namespace fccl::plan
