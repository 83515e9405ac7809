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

namespace fccl {

// Where a communicator that is made in another one's place belongs: its ranks' key of the store, and what tells it apart.
struct Place {
  Membership membership;
  std::string key;
  std::string identity;
};

// Shared by the group and the works of its calls. Any thread may call; what says so wants turn() held. After the first failure
// open() still gives the handle, whose calls throw the cause; after one of making it, or after its end, open() throws.
class Communicator {
 public:
  Communicator(Membership membership, c10::intrusive_ptr<c10d::Store> store, std::string key, fcclMemoryKind_t kind);

  // Held while a call is issued or runs, and while the communicator is made or ends.
  std::mutex& turn() { return turn_; }
  const Membership& membership() const { return membership_; }
  const std::string& group_text() const { return group_text_; }  // for messages
  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }
  const std::string& key() const { return key_; }
  // The same text on all ranks of the communicator that is made, and no other's.
  const std::string& identity() const { return identity_; }
  std::string attempt_of(const char* title) const;

  bool is_made();
  // Inside open(), which holds turn() for as long as peers let it wait.
  bool is_joining();
  // The handle, made if there is none: every rank comes to it in the same order of calls. Under turn.
  fcclComm_t open(const char* title);
  // Takes what a split or a shrink has made, which is told apart by `identity`. Before the first use.
  void adopt(fcclComm_t comm, std::string identity);
  // Takes another handle, or none yet, in the place of the one that it gives back, whatever has become of that. Under turn,
  // while no other call but revoke uses the group.
  fcclComm_t replace(fcclComm_t comm, Place place);
  // Of the calls issued from now on. Under turn, after open.
  void set_deadline(std::chrono::milliseconds timeout, const char* title);

  // Null if nothing has failed, also where the communicator has ended since.
  std::exception_ptr failure(const std::string& attempt);
  c10d::ErrorType error();

  // Ends the calls of all ranks, and every later one. Never waits.
  void revoke();
  // Waits until the device is done with all calls, if nothing has failed; each wait has its deadline. Under turn.
  void finish(const char* title);
  // Tells the peers that this rank has left, and frees the handle. Under turn; does nothing the second time.
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
  std::chrono::milliseconds deadline_;  // the communicator's, as set last; guarded by turn_
  std::mutex life_;                     // held while the handle is looked at outside a call; guards what follows
  State state_ = State::unmade;
  fcclComm_t comm_ = nullptr;
  bool aborted_ = false;
  std::exception_ptr refusal_;          // why it could not be made
  fcclResult_t failure_ = fcclSuccess;  // of a communicator that has ended
  std::string cause_;
};

}  // namespace fccl
