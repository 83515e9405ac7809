// A group's communicator of one kind of memory: made at its first use, and kept until the group ends.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <exception>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "bootstrap.h"
#include "fccl/fccl.h"

namespace fccl::torch {

// Identifies the communicator that replaces another one: its ranks' key of the store, and its own identity.
struct Place {
  Membership membership;
  std::string key;
  std::string identity;
};

// The group and the works of its calls share it. Any thread may call; functions that say so need turn() held. After the first
// failure open() still returns the handle, whose calls throw the cause; after a failed creation, or after its end, open()
// throws.
class Communicator {
 public:
  Communicator(Membership membership, c10::intrusive_ptr<c10d::Store> store, std::string key, fcclMemoryKind_t kind);

  // Held while a call is issued or runs, and while the communicator is made or ended.
  std::mutex& turn() { return turn_; }
  const Membership& membership() const { return membership_; }
  const std::string& group_text() const { return group_text_; }  // for messages
  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }
  const std::string& key() const { return key_; }
  // Returns a text that is the same on all ranks of the communicator, and unique to it.
  const std::string& identity() const { return identity_; }
  std::string attempt_of(const char* title) const;

  bool is_made();
  // True inside open(), which holds turn() as long as it waits for peers.
  bool is_joining();
  // Returns the handle, and makes it first if needed: every rank does this in the same order of calls. Needs turn.
  fcclComm_t open(const char* title);
  // Takes a handle that a split or a shrink has made, with its `identity`. Called before the first use.
  void adopt(fcclComm_t comm, std::string identity);
  // Replaces the handle by another one, or by none, and returns the old one, whatever its state. Needs turn, and no other call
  // but revoke may use the group.
  fcclComm_t replace(fcclComm_t comm, Place place);
  // Sets the deadline of calls issued from now on. Needs turn, after open.
  void set_deadline(std::chrono::milliseconds timeout, const char* title);

  // Returns null if no call has failed, even if the communicator has ended since.
  std::exception_ptr failure(const std::string& attempt);
  c10d::ErrorType error();

  // Fails the calls of all ranks, and every later one. It never waits.
  void revoke();
  // Waits until the device is done with all calls, unless one has failed; each wait has its deadline. Needs turn.
  void finish(const char* title);
  // Tells the peers that this rank has left, and frees the handle. Needs turn; does nothing the second time.
  void end(const char* title);

 private:
  enum class State { unmade, joining, made, failed, shut_down };

  fcclComm_t make();
  void report(fcclResult_t result, const char* title) const;

  Membership membership_;
  std::string group_text_;
  const c10::intrusive_ptr<c10d::Store> store_;
  std::string key_;
  std::string identity_;
  const fcclMemoryKind_t kind_;
  std::mutex turn_;
  std::chrono::milliseconds deadline_;  // the communicator's deadline, as last set; guarded by turn_
  std::mutex life_;                     // held while a thread reads the handle outside a call; guards what follows
  State state_ = State::unmade;
  fcclComm_t comm_ = nullptr;
  bool aborted_ = false;
  std::exception_ptr refusal_;          // the error of a failed creation
  fcclResult_t failure_ = fcclSuccess;  // result of a communicator that has ended
  std::string cause_;
};

}  // namespace fccl::torch
