// Tests of the handshake and of the messages behind it, byte by byte and without sockets.
#include "channels/handshake.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <memory>

namespace fccl::core {
namespace {

Key key_of(unsigned char fill) {
  Key key{};
  key.fill(fill);
  return key;
}

Conversation connecting(const Key& key, Party self = {3}) { return {Role::connects, key, self}; }
Conversation listening(const Key& key, Party self = {kRootRank}) { return {Role::listens, key, self}; }

// Removes and returns the bytes that `from` has to send.
std::string drain(Conversation& from) {
  std::string bytes;
  while (!from.outgoing().empty()) {
    bytes += from.outgoing();
    from.sent(from.outgoing().size());
  }
  return bytes;
}

// Carries bytes both ways until both are silent.
void converse(Conversation& a, Conversation& b) {
  while (!a.outgoing().empty() || !b.outgoing().empty()) {
    ASSERT_TRUE(b.take(drain(a)));
    ASSERT_TRUE(a.take(drain(b)));
  }
}

TEST(Handshake, ends_with_one_key_open_and_know_each_other) {
  Conversation a = connecting(key_of(1));
  Conversation b = listening(key_of(1));
  converse(a, b);
  ASSERT_TRUE(a.open() && b.open());
  EXPECT_EQ(a.peer().rank, kRootRank);
  EXPECT_EQ(b.peer().rank, 3);
  EXPECT_EQ(b.peer().version, kOwnVersion);
}

TEST(Handshake, works_in_single_bytes) {
  Conversation a = connecting(key_of(1));
  Conversation b = listening(key_of(1));
  for (int round = 0; round < 3; ++round) {
    for (const char byte : drain(a)) ASSERT_TRUE(b.take({&byte, 1}));
    for (const char byte : drain(b)) ASSERT_TRUE(a.take({&byte, 1}));
  }
  EXPECT_TRUE(a.open() && b.open());
}

TEST(Handshake, a_wrong_key_is_refused_on_both_sides) {
  Conversation a = connecting(key_of(1));
  Conversation b = listening(key_of(2));
  ASSERT_TRUE(b.take(drain(a)));
  ASSERT_TRUE(a.take(drain(b)));
  EXPECT_FALSE(b.take(drain(a)));
  const Result<void> told = a.take(drain(b));
  ASSERT_FALSE(told);
  EXPECT_NE(told.error().message.find("key"), std::string::npos);
  EXPECT_FALSE(a.open() || b.open());
}

TEST(Handshake, the_listening_end_says_nothing_to_who_does_not_speak_fccl) {
  for (const std::string_view stranger : {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02", "fccL\r\n"}) {
    Conversation b = listening(key_of(1));
    EXPECT_FALSE(b.take(stranger));
    EXPECT_TRUE(b.outgoing().empty());
  }
}

TEST(Handshake, a_recorded_handshake_cannot_be_played_again) {
  Conversation a = connecting(key_of(1));
  Conversation b = listening(key_of(1));
  const std::string preamble = drain(a);
  ASSERT_TRUE(b.take(preamble));
  ASSERT_TRUE(a.take(drain(b)));
  const std::string proof = drain(a);
  ASSERT_TRUE(b.take(proof));

  Conversation fresh = listening(key_of(1));
  ASSERT_TRUE(fresh.take(preamble));
  EXPECT_FALSE(fresh.take(proof));
}

TEST(Handshake, an_end_does_not_take_its_own_words_for_the_peers) {
  Conversation a = connecting(key_of(1));
  const std::string preamble = drain(a);
  ASSERT_TRUE(a.take(preamble));
  EXPECT_FALSE(a.take(drain(a)));
}

TEST(Handshake, any_flipped_bit_of_preamble_or_proof_is_refused) {
  const size_t bits = 8 * (kPreambleBytes + kProofBytes);
  for (size_t bit = 0; bit < bits; ++bit) {
    Conversation a = connecting(key_of(1));
    Conversation b = listening(key_of(1));
    const auto flip = [&](std::string bytes, size_t begin) {
      const size_t at = bit / 8 - begin;
      if (bit / 8 >= begin && at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit % 8));
      return bytes;
    };
    bool refused = !b.take(flip(drain(a), 0));
    if (!refused) {
      ASSERT_TRUE(a.take(drain(b)));
      refused = !b.take(flip(drain(a), kPreambleBytes));
    }
    EXPECT_TRUE(refused && !b.open()) << bit;
  }
}

TEST(Handshake, other_versions_are_told_to_both_sides_after_the_key_is_proven) {
  const Party newer{3, {kOwnVersion.protocol + 1, 200}};
  Conversation a = connecting(key_of(1), newer);
  Conversation b = listening(key_of(1));
  converse(a, b);
  ASSERT_TRUE(a.open() && b.open());
  EXPECT_EQ(b.peer().version, newer.version);
  EXPECT_EQ(a.peer().version, kOwnVersion);
  EXPECT_EQ(version_difference(b.peer(), b.self())
                .find(fmt::format("rank 3 speaks protocol {}, library 0.2.0, but the root speaks protocol {}",
                                  newer.version.protocol, kOwnVersion.protocol)),
            0U)
      << version_difference(b.peer(), b.self());
}

// Two ends that are past the handshake.
struct Open {
  Conversation a = connecting(key_of(7));
  Conversation b = listening(key_of(7));
  Open() { converse(a, b); }
};

TEST(Conversation, carries_messages_both_ways_in_order) {
  Open ends;
  ends.a.say("one");
  ends.a.say("");
  ends.b.say(std::string(kMessageLimit, 'x'));
  converse(ends.a, ends.b);
  EXPECT_EQ(ends.b.hear(), "one");
  EXPECT_EQ(ends.b.hear(), "");
  EXPECT_EQ(ends.b.hear(), std::nullopt);
  EXPECT_EQ(ends.a.hear(), std::string(kMessageLimit, 'x'));
}

TEST(Conversation, any_flipped_bit_of_a_message_is_noticed) {
  const size_t bytes = 4 + 5 + sizeof(Digest);
  for (size_t bit = 0; bit < 8 * bytes; ++bit) {
    Open ends;
    ends.a.say("hello");
    std::string sent = drain(ends.a);
    ASSERT_EQ(sent.size(), bytes);
    sent[bit / 8] = static_cast<char>(sent[bit / 8] ^ (1 << bit % 8));
    const bool refused = !ends.b.take(sent);
    EXPECT_TRUE(refused || ends.b.hear() == std::nullopt) << bit;
  }
}

TEST(Conversation, a_repeated_a_missing_and_a_reflected_message_are_noticed) {
  {
    Open ends;
    ends.a.say("pay");
    const std::string sent = drain(ends.a);
    ASSERT_TRUE(ends.b.take(sent));
    EXPECT_FALSE(ends.b.take(sent));
  }
  {
    Open ends;
    ends.a.say("first");
    drain(ends.a);
    ends.a.say("second");
    EXPECT_FALSE(ends.b.take(drain(ends.a)));
  }
  {
    Open ends;
    ends.a.say("mirror");
    EXPECT_FALSE(ends.a.take(drain(ends.a)));
  }
}

TEST(Conversation, a_huge_length_is_refused_before_its_bytes_come) {
  Open ends;
  EXPECT_FALSE(ends.b.take(std::string_view("\xff\xff\xff\x7f", 4)));
}

TEST(Conversation, a_message_that_is_shared_arrives_as_any_other_between_the_others) {
  const auto shared = std::make_shared<const std::string>(10000, 's');
  for (const size_t portion : {size_t{1}, size_t{13}, size_t{1} << 20}) {
    Open ends;
    ends.a.allow(shared->size());
    ends.b.say("before");
    ends.b.say(shared);
    ends.b.say("after");
    while (!ends.b.outgoing().empty()) {
      const std::string part(ends.b.outgoing().substr(0, portion));
      ends.b.sent(part.size());
      ASSERT_TRUE(ends.a.take(part));
    }
    EXPECT_EQ(shared.use_count(), 1);
    ends.b.say(shared);
    ends.b.say("the last");
    converse(ends.a, ends.b);
    for (const std::string& expected : {std::string("before"), *shared, std::string("after"), *shared, std::string("the last")})
      EXPECT_EQ(ends.a.hear(), expected);
    EXPECT_EQ(ends.a.hear(), std::nullopt);
  }
}

TEST(Conversation, a_message_may_have_what_its_receiver_allows_and_not_a_byte_more) {
  const auto shared = std::make_shared<const std::string>(kMessageLimit + 1, 's');
  for (const size_t allowed : {kMessageLimit, shared->size()}) {
    Open ends;
    ends.a.allow(allowed);
    ends.b.say(shared);
    EXPECT_EQ(static_cast<bool>(ends.a.take(drain(ends.b))), allowed == shared->size());
  }
}

TEST(Conversation, a_shared_message_that_was_changed_or_repeated_is_noticed) {
  const auto shared = std::make_shared<const std::string>(300, 's');
  Open honest;
  honest.b.say(shared);
  const size_t bytes = drain(honest.b).size();
  for (size_t at = 0; at < bytes; ++at) {
    Open ends;
    ends.b.say(shared);
    std::string sent = drain(ends.b);
    sent[at] = static_cast<char>(sent[at] ^ 1);
    const bool refused = !ends.a.take(sent);
    EXPECT_TRUE(refused || ends.a.hear() == std::nullopt) << at;
  }
  Open ends;
  ends.b.say(shared);
  const std::string sent = drain(ends.b);
  ASSERT_TRUE(ends.a.take(sent));
  EXPECT_FALSE(ends.a.take(sent));
}

// Large blocks count apart. A sanitizer's memory is not counted.
size_t memory_in_use() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(Conversation, what_is_sent_is_not_kept_where_something_always_remains_to_be_sent) {
  Open ends;
  const std::string message(kMessageLimit, 'x');
  const size_t before = memory_in_use();
  ends.a.say(message);
  for (int i = 0; i < 1000; ++i) {
    ends.a.say(message);
    ends.a.sent(ends.a.outgoing().size() - 1);
  }
  EXPECT_EQ(ends.a.outgoing().size(), 1U);
  EXPECT_LT(memory_in_use(), before + 256 * 1024);
}

}  // namespace
}  // namespace fccl::core
