// Fuzzes both ends of the handshake, and the messages behind it, in any portions.
#include <sodium.h>

#include <algorithm>
#include <array>
#include <memory>

#include "channels/handshake.h"
#include "fuzz/fuzz.h"

namespace fccl::core::fuzz {
namespace {

Key key() {
  Key key{};
  key.fill(5);
  return key;
}

// Nonces that are the same in every run, so that an input always does the same.
void make_random_bytes_repeat() {
  static const bool done = [] {
    static randombytes_implementation fixed{};
    fixed.implementation_name = [] { return "fixed"; };
    fixed.random = [] { return uint32_t{42}; };
    fixed.buf = [](void* into, size_t size) { std::fill_n(static_cast<unsigned char*>(into), size, 42); };
    return randombytes_set_implementation(&fixed) == 0;
  }();
  check(done, "libsodium takes another source of random bytes");
}

std::string drain(Conversation& from) {
  std::string bytes;
  while (!from.outgoing().empty()) {
    bytes += from.outgoing();
    from.sent(from.outgoing().size());
  }
  return bytes;
}

// Gives bytes in portions until they end or are refused.
bool take_in_portions(Conversation& end, std::string_view bytes, size_t portion) {
  while (!bytes.empty()) {
    if (!end.take(bytes.substr(0, portion))) return false;
    bytes.remove_prefix(std::min(portion, bytes.size()));
  }
  return true;
}

// Feeds a conversation the words of a stranger, who has no key.
void listen_to_stranger(Role role, std::string_view said, size_t portion) {
  Conversation whole(role, key(), {kRootRank});
  Conversation parts(role, key(), {kRootRank});
  drain(whole);
  drain(parts);
  const bool good = static_cast<bool>(whole.take(said));
  check(good == take_in_portions(parts, said, portion), "portions make no difference");
  check(!whole.open() && !parts.open(), "nobody gets in without the key");
  check(whole.outgoing() == parts.outgoing(), "portions make no difference to the answer");
  check(whole.outgoing().size() <= kPreambleBytes + kProofBytes, "a stranger is told little");
}

// Two ends that know each other talk; what the input says is changed on its way from one to the other.
void tamper(Input& input, size_t portion) {
  Conversation a(Role::connects, key(), {3});
  Conversation b(Role::listens, key(), {kRootRank});
  for (int i = 0; i < 2; ++i) check(b.take(drain(a)) && a.take(drain(b)), "honest ends understand each other");
  check(a.open() && b.open(), "honest ends open");
  const size_t at = input.byte() * size_t{256} + input.byte();
  const auto change = static_cast<char>(input.byte());
  std::vector<std::string> said;
  for (int i = 0; i < 3 && !input.empty(); ++i) said.emplace_back(input.text(input.byte() * size_t{64}));
  b.allow(size_t{255} * 64);
  std::string sent;
  for (const std::string& message : said) {
    if (message.size() <= kMessageLimit) {
      a.say(message);
      continue;
    }
    sent += drain(a);
    a.say(std::make_shared<const std::string>(message));
  }
  sent += drain(a);
  const bool changed = at < sent.size() && change != 0;
  if (changed) sent[at] = static_cast<char>(sent[at] ^ change);
  const bool good = take_in_portions(b, sent, portion);
  size_t heard = 0;
  for (std::optional<std::string> message = b.hear(); message; message = b.hear(), ++heard)
    check(heard < said.size() && *message == said[heard], "only what was said is heard");
  check(changed ? heard < said.size() : good && heard == said.size(), "a change is noticed, and nothing else is");
}

}  // namespace

std::vector<std::string> seeds() {
  make_random_bytes_repeat();
  const std::string preamble = [] {
    const Conversation honest(Role::connects, key(), {3});
    return std::string(honest.outgoing());
  }();
  return {std::string("\0\1", 2) + preamble + std::string(kProofBytes, '\0'),
          std::string("\1\7", 2) + preamble,
          std::string("\0\377GET / HTTP/1.1\r\n\r\n", 20),
          std::string("\2\377\377\377\0\1one message", 17),
          std::string("\2\5\0\1\1\2", 6) + std::string(128, 'x') + std::string("\1y"),
          std::string("\2\377\20\1\1\2", 6) + std::string(128, 'x') + '\100' + std::string(4096, 'y') + '\101' +
              std::string(4160, 'z')};
}

}  // namespace fccl::core::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fccl::core;
  fuzz::make_random_bytes_repeat();
  fuzz::Input input(data, size);
  const uint8_t what = input.byte();
  const size_t portion = 1 + input.byte();
  if (what % 3 == 2)
    fuzz::tamper(input, portion);
  else
    fuzz::listen_to_stranger(what % 3 == 0 ? Role::listens : Role::connects, input.rest(), portion);
  return 0;
}
