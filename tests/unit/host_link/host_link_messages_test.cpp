// Tests of what the leaders of hosts say to each other, as bytes.
#include <gtest/gtest.h>

#include "channels/handshake.h"
#include "host_link/link_messages.h"

namespace fccl::core {
namespace {

std::vector<LinkMessage> samples() {
  return {Blobs{{"abc", "", "de"}},
          Blobs{{""}},
          Awaiting{"missing: rank 4"},
          Failure{{MessageKind::late_for_call, "late"}},
          Departure{9, PeerStatus::left, uint64_t{7} << 40},
          Departure{9, PeerStatus::died},
          Cut{2, LinkEnd::goodbye},
          Goodbye{},
          LongWait{3, 9},
          LongWait{3, kNobody}};
}

TEST(LinkMessages, come_back_from_their_bytes) {
  for (const LinkMessage& message : samples()) {
    const std::optional<LinkMessage> same = decode_link(encode_link(message));
    ASSERT_TRUE(same) << message.index();
    EXPECT_EQ(same->index(), message.index());
    EXPECT_EQ(encode_link(*same), encode_link(message));
  }
  EXPECT_EQ(std::get<Blobs>(*decode_link(encode_link(samples()[0]))).of_hosts, (std::vector<std::string>{"abc", "", "de"}));
  EXPECT_EQ(std::get<Departure>(*decode_link(encode_link(samples()[4]))).rank, 9);
  EXPECT_EQ(std::get<Departure>(*decode_link(encode_link(samples()[4]))).last_call, uint64_t{7} << 40);
  EXPECT_EQ(std::get<Failure>(*decode_link(encode_link(samples()[3]))).error.message, "late");
  EXPECT_EQ(std::get<Failure>(*decode_link(encode_link(samples()[3]))).error.code.number(), 8001);
}

TEST(LinkMessages, bytes_that_are_cut_or_too_many_are_refused) {
  for (const LinkMessage& message : samples()) {
    const std::string bytes = encode_link(message);
    for (size_t length = 0; length < bytes.size(); ++length)
      EXPECT_FALSE(decode_link(bytes.substr(0, length))) << message.index() << " " << length;
    EXPECT_FALSE(decode_link(bytes + '\0'));
  }
}

TEST(LinkMessages, what_nobody_says_is_refused) {
  EXPECT_FALSE(decode_link(encode_link(Blobs{{std::string(kBlobLimit + 1, 'x')}})));
  EXPECT_FALSE(decode_link(encode_link(Failure{{fcclSuccess, "fine"}})));
  EXPECT_FALSE(decode_link(encode_link(Failure{{fcclNumResults, "?"}})));
  EXPECT_FALSE(decode_link(encode_link(Departure{-1, PeerStatus::died})));
  EXPECT_FALSE(decode_link(encode_link(Departure{1, PeerStatus::present})));
  EXPECT_FALSE(decode_link(encode_link(Departure{1, PeerStatus::out_of_reach})));
  EXPECT_FALSE(decode_link(encode_link(Cut{-1, LinkEnd::broken})));
  EXPECT_FALSE(decode_link(encode_link(Cut{1, static_cast<LinkEnd>(2)})));
  EXPECT_FALSE(decode_link(encode_link(LongWait{-1, 2})));
  EXPECT_FALSE(decode_link(encode_link(LongWait{1, -2})));
  EXPECT_FALSE(decode_link("\x07"));
}

TEST(LinkMessages, hosts_that_are_more_or_fewer_than_counted_are_refused) {
  const std::string good = encode_link(Blobs{{"abc", "de"}});
  ASSERT_TRUE(decode_link(good));
  for (const char* count : {"\0\0\0\0", "\1\0\0\0", "\3\0\0\0", "\377\377\377\377"})
    EXPECT_FALSE(decode_link(std::string(good).replace(1, 4, count, 4)));
}

TEST(LinkMessages, long_texts_are_cut) {
  const auto failure = decode_link(encode_link(Failure{{fcclTimeout, std::string(100000, 'z')}}));
  ASSERT_TRUE(failure);
  EXPECT_EQ(std::get<Failure>(*failure).error.message, std::string(kLinkTextLimit, 'z'));
}

TEST(LinkMessages, the_largest_blobs_fit_what_those_who_take_them_allow) {
  const std::string largest(kBlobLimit, 'x');
  EXPECT_EQ(encode_link(Blobs{{largest}}).size(), message_limit(1));
  EXPECT_EQ(encode_link(Blobs{{largest, largest, largest}}).size(), message_limit(3));
  EXPECT_EQ(encode_link(Blobs{std::vector(kBlobsLimit / kBlobLimit, largest)}).size(), message_limit(16));
  EXPECT_EQ(message_limit(512) - message_limit(16), 4 * (512 - 16));
}

}  // namespace
}  // namespace fccl::core
