// Fills the tables of blocks.
#include "topology/columns.h"

#include <algorithm>

namespace fccl::core {
namespace {

void end_chunk(Blocks& blocks) { blocks.begin.push_back(blocks.size()); }

}  // namespace

int Blocks::most() const {
  int most = 0;
  for (int chunk = 0; chunk < chunks(); ++chunk) most = std::max(most, begin[chunk + 1] - begin[chunk]);
  return most;
}

Columns::Columns(std::vector<std::vector<int>> ranks_of_hosts, int rank) : ranks_(std::move(ranks_of_hosts)) {
  const auto fewer = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  columns_ = static_cast<int>(std::ranges::min_element(ranks_, fewer)->size());
  most_ranks_ = static_cast<int>(std::ranges::max_element(ranks_, fewer)->size());
  size_t all = 0;
  for (const std::vector<int>& ranks : ranks_) all += ranks.size();
  host_of_.resize(all);
  local_of_.resize(all);
  for (int host = 0; host < hosts(); ++host)
    for (int local = 0; local < static_cast<int>(ranks_[host].size()); ++local) {
      host_of_[ranks_[host][local]] = host;
      local_of_[ranks_[host][local]] = local;
    }
  host_ = host_of_[rank];
  local_ = local_of_[rank];
  by_rank_.resize(static_cast<size_t>(columns_));
  by_host_.resize(static_cast<size_t>(columns_));
  whole_.resize(static_cast<size_t>(columns_));
  for (int column = 0; column < columns_; ++column) {
    for (int host = 0; host < hosts(); ++host) {
      for (size_t local = static_cast<size_t>(column); local < ranks_[host].size(); local += static_cast<size_t>(columns_))
        by_rank_[column].numbers.push_back(ranks_[host][local]);
      end_chunk(by_rank_[column]);
      by_host_[column].numbers.push_back(column * hosts() + host);
      end_chunk(by_host_[column]);
    }
    whole_[column].numbers.push_back(column);
    end_chunk(whole_[column]);
  }
}

std::vector<int> Columns::members() const {
  std::vector<int> members;
  members.reserve(ranks_.size());
  for (const std::vector<int>& ranks : ranks_) members.push_back(ranks[local_]);
  return members;
}

}  // namespace fccl::core
