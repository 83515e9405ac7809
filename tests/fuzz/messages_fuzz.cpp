// Fuzzes the messages of the bootstrap and of the link between hosts, as one who holds the key could send them.
#include <utility>

#include "bootstrap/messages.h"
#include "channels/handshake.h"
#include "fuzz/fuzz.h"
#include "host_link/link_messages.h"

namespace fccl::core::fuzz {

std::vector<std::string> seeds() {
  const Member member{3, 4711, 0, "host-a", "0001f", "10.0.0.1:4242"};
  const Member first{0, 4711, 0, "host-a", "0001f", "10.0.0.1:4242", true};
  const Member second{1, 4712, 1, "host-b", "00020"}, third{2, 4713, 0, "host-c", "00021"};
  std::vector<std::string> all;
  for (const Message& message :
       {Message{Hello{member, 8, "FCCL_SLOT_BYTES=4096\n", {}, -1, "boot-1 host-a"}}, Message{GivingUp{}},
        Message{Progress{2, "ranks 1, 3-7"}}, Message{Refusal{{fcclTimeout, "late"}}}, Message{Roster{{first}}},
        Message{Roster{{first, second, third}}}, Message{Failed{{fcclSystemError, "no memory"}}}, Message{Farewell{}},
        Message{Later{}}, Message{SharedRoster{300}}, Message{PlaceInTree{"10.0.0.2:4242", 7, "rank 7"}}, Message{Query{}},
        Message{LostWay{"rank 7", "it ended"}},
        Message{Batch{{{3, Hello{member, 8, "a=1\n", {}, -1, "boot-1 host-a"}},
                       {1, Hello{second, 8, {}, {}, -1, "boot-1 host-a"}, true},
                       {9, GivingUp{}},
                       {2, Failed{{fcclTimeout, "late"}}},
                       {2, Gone{"it ended"}},
                       {5, Present{}}},
                      Collects{"10.0.0.1:4242", true}}},
        Message{Hello{member, 8, {}, Error{fcclInvalidUsage, "no such NIC"}}}})
    all.push_back(encode(message));
  for (const LinkMessage& message :
       {LinkMessage{Blobs{{"abc"}}}, LinkMessage{Blobs{{"abc", ""}}}, LinkMessage{Awaiting{"missing: rank 4"}},
        LinkMessage{Failure{{fcclTimeout, "late"}}}, LinkMessage{Departure{9, PeerStatus::left}},
        LinkMessage{Cut{2, LinkEnd::broken}}, LinkMessage{Goodbye{}}})
    all.push_back(encode_link(message));
  return all;
}

namespace {

void check_roster(const Roster& roster, size_t bytes) {
  check(!roster.members.empty(), "a roster has a rank");
  for (size_t rank = 0; rank < roster.members.size(); ++rank)
    check(std::cmp_equal(roster.members[rank].rank, rank), "a roster has every rank once, in its place");
  check(bytes <= roster_limit(static_cast<int>(roster.members.size())), "a rank allows a roster that makes sense");
}

void check_bootstrap_message(std::string_view bytes) {
  const std::optional<Message> message = decode(bytes);
  if (!message) return;
  const std::string again = encode(*message);
  check(again.size() <= kMessageLimit, "what was heard can be said");
  const std::optional<Message> same = decode(again);
  check(same && encode(*same) == again, "a message comes back from its bytes");
  if (const Roster* roster = std::get_if<Roster>(&*message); roster != nullptr) check_roster(*roster, again.size());
}

void check_link_message(std::string_view bytes) {
  const std::optional<LinkMessage> message = decode_link(bytes);
  check(!message || encode_link(*message) == bytes, "what makes sense has one form of bytes");
}

}  // namespace
}  // namespace fccl::core::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fccl::core;
  if (size > kMessageLimit) return 0;
  const std::string_view bytes = fuzz::Input(data, size).rest();
  fuzz::check_bootstrap_message(bytes);
  fuzz::check_link_message(bytes);
  return 0;
}
