// MessageKind: the stable numbers of errors and warnings, such as FCCL-6001, by which docs/reference/errors.md explains them.
#pragma once

#include <cstdint>

namespace fccl::core {

// The kinds of messages that the page explains. The thousands of a number are the fcclResult_t of the error; 0: a warning of
// the log. A number keeps its meaning for ever, and tests/docs/message_codes.txt keeps the list.
enum class MessageKind : uint16_t {
  stray_message = 1,    // a message came from the network that no rank sent
  stray_total = 2,      // how many messages no rank sent
  unknown_setting = 3,  // no setting has the name of a variable FCCL_*
  long_wait = 4,        // a rank has waited for five seconds
  too_many_files = 2001,
  no_thread = 2002,
  no_plugin = 2003,
  plugin_not_found = 2004,
  plugin_not_loaded = 2005,
  other_plugin = 2006,  // of another build
  arena_is_full = 2007,
  no_pidfd = 2008,
  no_port = 2009,
  null_buffer = 4001,
  buffers_overlap = 4002,
  blocks_overlap = 4003,
  other_memory = 4004,  // not the communicator's kind
  other_stream = 4005,
  shrinks_differ = 5001,
  calls_differ = 5002,
  counts_differ = 5003,
  transfers_differ = 5004,
  joins_differ = 5005,  // the settings or the places with which ranks join
  other_job = 5006,
  forked = 5007,
  gpus_apart = 5008,  // a path was asked for on which GPUs reach each other, but they do not
  wrong_setting = 5009,
  died = 6001,
  left = 6002,
  left_in_init = 6003,
  root_left = 6004,
  nobody_listens = 6005,
  network_failed = 6006,
  broke_protocol = 6007,
  died_in_shrink = 6008,
  late_for_call = 8001,
  late_for_transfer = 8002,
  late_gpu = 8003,  // the rank's own
  late_for_init = 8004,
  late_for_shrink = 8005,
  too_many_to_shrink = 9001,
  aborted = 10001,
  ended_to_shrink = 10002,
  child_ended = 10003,  // a communicator that was being made of this one
  ended_in_init = 10004,
};

}  // namespace fccl::core
