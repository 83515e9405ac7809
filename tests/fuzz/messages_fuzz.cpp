// Fuzzes the messages of the bootstrap, as one who holds the key could send them.
#include "communicator/handshake.h"
#include "communicator/messages.h"
#include "fuzz/fuzz.h"

namespace fccl::fuzz {

std::vector<std::string> seeds() {
  const Member member{3, 4711, "boot-1 node-a", "node-a", "0001f"};
  std::vector<std::string> all;
  for (const Message& message :
       {Message{Hello{member, 8, "FCCL_SLOT_BYTES=4096\n"}}, Message{GivingUp{}}, Message{Progress{2, "ranks 1, 3-7"}},
        Message{Refusal{{fcclTimeout, "late"}}}, Message{member}})
    all.push_back(encode(message));
  return all;
}

}  // namespace fccl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fccl;
  if (size > kMessageLimit) return 0;
  const std::optional<Message> message = decode(fuzz::Input(data, size).rest());
  if (!message) return 0;
  const std::string again = encode(*message);
  check(again.size() <= kMessageLimit, "what was heard can be said");
  const std::optional<Message> same = decode(again);
  check(same && encode(*same) == again, "a message comes back from its bytes");
  return 0;
}
