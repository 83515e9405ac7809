// WaitQuestions: carries the questions of waiting ranks, and the answers, over the network.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "health/wait_question.h"
#include "os/clock.h"
#include "wire/port.h"

namespace fccl::core {

struct Control;
class Endpoint;
class WireLane;

// The judge of the rank's waits owns it; the lane of transfers, on which it asks every rank of another host, ends before it and
// is not touched after that. A question may be lost, and so may an answer: a rank that waits asks again. The thread that polls
// the endpoint answers at once, so a rank that computes answers, and a process that is stopped does not.
class WaitQuestions final : public WaitQuestioner, private Asides {
 public:
  // The members of the lane are all ranks. From now on it answers what peers ask.
  WaitQuestions(Endpoint& endpoint, WireLane& lane, Control& control);

  bool ask(int rank, const WaitQuestion& question) override;
  void tell(const Error& failure) override;

 private:
  // A place for an aside that is on its way.
  struct Place {
    int rank = -1;
    uint64_t posted = 0;  // operations
  };
  struct Asker {
    int rank = -1;
    Clock::time_point asked{};
  };

  void hear(int peer, std::span<const std::byte> content) override;
  void hear_question(int rank, const WaitQuestion& question);
  bool is_free(int place) const;
  int find_place(int first, int behind) const;
  bool is_being_asked(int rank) const;
  bool answer(int rank, const WaitAnswer& answer);
  bool post(int rank, int place, std::span<const std::byte> head, std::span<const std::byte> text);

  Endpoint& endpoint_;
  WireLane& lane_;
  Control& control_;
  // The endpoint's turn guards them.
  std::vector<Place> places_;       // questions have the first ones, answers the others
  std::array<Asker, 16> askers_{};  // the latest ones
  size_t next_asker_ = 0;
  Clock::time_point next_question_{};
};

}  // namespace fccl::core
