// Exchange: one member's steps of a plan over the slices of a call, as far as they go without waiting.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plan/steps.h"
#include "wire/lane.h"
#include "wire/task.h"

namespace fccl {

// Lives in the frame of the phase that runs it, on a lane that has entered the call. Sends, and receives with additions, go on
// side by side, each in the order of slices and steps: slice k + 1 is sent while slice k is on the wire, and landing is freed
// however full the way out is, so that members who all send cannot stop each other.
class Exchange {
 public:
  Exchange(WireLane& lane, const WireTask& task);

  uint64_t slices() const { return slices_; }
  // Does all that can be done now of those slices whose input is there, the first `ready`; true at the end: when everything is
  // received and handed to the transport and every peer's entry was read, or as soon as one was found that differs.
  bool advance(uint64_t ready);
  // How many slices of the output are there.
  uint64_t received() const { return receiving_.slice; }
  // A member that keeps it from going on.
  int awaited_member() const { return awaited_; }
  Outcome outcome() const { return outcome_; }

 private:
  // The next step of a kind to do.
  struct Cursor {
    uint64_t slice = 0;
    size_t step = 0;
  };

  // Each does the next step of its cursor, unless that must wait.
  bool send_one();
  bool receive_one();
  bool receive(const plan::Step& step);
  bool add(const plan::Step& step);
  bool read_entries();
  bool agrees(int member);
  bool stage(const plan::Step& step);
  void copy_own();
  // To the first step of the kind in the slice from the cursor's on, or to the end of the steps.
  void find(Cursor& cursor, bool sends) const;
  bool is_done(int steps) const;
  int chunk_of(const plan::Step& step, int i) const;
  size_t slice_bytes(int chunk, uint64_t slice) const;
  size_t message_bytes(const plan::Step& step, uint64_t slice) const;
  std::byte* place(const Chunks& chunks, int chunk, uint64_t slice) const { return chunks.at(chunk) + slice * piece_; }

  WireLane& lane_;
  const WireTask& task_;
  const plan::Steps& steps_;
  size_t piece_;
  uint64_t slices_;
  Cursor sending_, receiving_;
  uint64_t copied_ = 0;  // slices of the own chunk
  // What lies in the stage taken last: the message of a step, in a slice; none if null.
  const plan::Step* staged_ = nullptr;
  uint64_t staged_slice_ = 0;
  int entries_read_ = 1;  // those of peer(1) and so on
  int awaited_;
  Outcome outcome_;
};

}  // namespace fccl
