// WirePair: the transfers between two ranks of different hosts, over the network.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "transfers/transfer_pair.h"

namespace fccl::core {

class NoticeLane;
class WireLane;

// A rank of another host has no slots here, so this pair copies every payload that comes before its receive.
class WirePair final : public TransferPair {
 public:
  // The caller keeps `lane` alive longer than this. `eager_bytes`: the longest eager payload, if the lane's notices have room.
  WirePair(NoticeLane& lane, int member, size_t eager_bytes);

  size_t eager_bytes() const override { return eager_bytes_; }
  bool post_eager(const Notice& notice, const void* payload, size_t bytes) override;
  bool can_post() override;
  void post(const Notice& notice, const void* lent) override;

  std::optional<Incoming> next() override;
  const std::byte* keep(const Incoming& next, std::vector<std::byte>& room) const override;
  void take() override;
  void release(const Notice& notice) override;

  Moved send(const std::byte* source, size_t bytes, int most, CopyBytes put) override;
  Moved receive(std::byte* target, size_t bytes, int most, CopyBytes copy) override;

 private:
  NoticeLane& notices_;
  WireLane& wire_;
  int member_;
  size_t eager_bytes_;
};

}  // namespace fccl::core
