// Tests of what the leaders of hosts say to each other, as bytes.
#include <gtest/gtest.h>

#include "bootstrap/handshake.h"
#include "host_link/link_messages.h"

namespace fccl::core {
namespace {

std::vector<LinkMessage> samples() {
  return {Piece{3, 7, "abc"},
          Piece{0, 0, ""},
          Awaiting{"missing: rank 4"},
          Failure{{MessageKind::late_for_call, "late"}},
          Departure{9, PeerStatus::left},
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
  const auto piece = std::get<Piece>(*decode_link(encode_link(samples()[0])));
  EXPECT_EQ(piece.host, 3);
  EXPECT_EQ(piece.left, 7U);
  EXPECT_EQ(piece.bytes, "abc");
  EXPECT_EQ(std::get<Departure>(*decode_link(encode_link(samples()[4]))).rank, 9);
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
  EXPECT_FALSE(decode_link(encode_link(Piece{-1, 1, "a"})));
  EXPECT_FALSE(decode_link(encode_link(Piece{0, 1, "ab"})));
  EXPECT_FALSE(decode_link(encode_link(Piece{0, 1, ""})));
  EXPECT_FALSE(decode_link(encode_link(Piece{0, kBlobLimit + 1, "a"})));
  EXPECT_FALSE(decode_link(encode_link(Piece{0, kBlobLimit, std::string(kPieceLimit + 1, 'x')})));
  EXPECT_FALSE(decode_link(encode_link(Failure{{fcclSuccess, "fine"}})));
  EXPECT_FALSE(decode_link(encode_link(Failure{{fcclNumResults, "?"}})));
  EXPECT_FALSE(decode_link(encode_link(Departure{-1, PeerStatus::died})));
  EXPECT_FALSE(decode_link(encode_link(Departure{1, PeerStatus::present})));
  EXPECT_FALSE(decode_link(encode_link(Departure{1, PeerStatus::out_of_reach})));
  EXPECT_FALSE(decode_link(encode_link(Cut{-1, LinkEnd::broken})));
  EXPECT_FALSE(decode_link(encode_link(Cut{1, LinkEnd::unheard})));
  EXPECT_FALSE(decode_link(encode_link(LongWait{-1, 2})));
  EXPECT_FALSE(decode_link(encode_link(LongWait{1, -2})));
  EXPECT_FALSE(decode_link("\x07"));
}

TEST(LinkMessages, long_texts_are_cut_and_the_largest_piece_fits_a_message) {
  const auto failure = decode_link(encode_link(Failure{{fcclTimeout, std::string(100000, 'z')}}));
  ASSERT_TRUE(failure);
  EXPECT_EQ(std::get<Failure>(*failure).error.message, std::string(kLinkTextLimit, 'z'));
  EXPECT_LE(encode_link(Piece{1, kBlobLimit, std::string(kPieceLimit, 'x')}).size(), kMessageLimit);
}

}  // namespace
}  // namespace fccl::core
