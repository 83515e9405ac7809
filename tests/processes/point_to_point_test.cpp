// Sends and receives between the ranks of one host: what arrives, and in which order.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "processes/parcel.h"
#include "processes/size.h"
#include "processes/test_stream.h"

namespace fccl::core::testing {
namespace {

int after(const Seat& seat) { return (seat.rank + 1) % seat.ranks; }
int before(const Seat& seat) { return (seat.rank + seat.ranks - 1) % seat.ranks; }

// Every rank sends to the next one, on a stream, and receives from the one before.
std::string pass_on(const Seat& seat, fcclComm_t comm, Route route) {
  const TestStream stream;
  route.from = seat.rank;
  route.to = after(seat);
  Parcel sent(route);
  route.from = before(seat);
  route.to = seat.rank;
  Parcel received(route);
  if (sent.send(comm, stream) != fcclSuccess || received.receive(comm) != fcclSuccess ||
      fcclStreamSynchronize(stream) != fcclSuccess)
    return fcclGetLastError(comm);
  return received.fault() + sent.fault();
}

// Beside a notice, in an eager slot, in slices, in pieces that the receiver reads.
const std::vector<size_t>& sizes_of_transfers() {
  static const std::vector<size_t> sizes{0,    1,      32,     33,     4095,      4096,      4097,
                                         8192, 131072, 131073, 262145, 1'048'576, 1'048'577, 2'500'001};
  return sizes;
}

class PointToPoint : public ::testing::TestWithParam<Size> {};

TEST_P(PointToPoint, moves_every_size_whole) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    int iteration = 0;
    for (const size_t bytes : sizes_of_transfers())
      EXPECT_EQ(pass_on(seat, comm, {.count = bytes, .iteration = ++iteration, .misalignment = bytes % 7}), "");
  });
}

TEST_P(PointToPoint, moves_every_size_whole_where_no_memory_is_read) {
  const Setting attach("FCCL_CROSS_MEMORY_ATTACH", "off");
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    for (const size_t bytes : sizes_of_transfers()) EXPECT_EQ(pass_on(seat, comm, {.count = bytes}), "");
  });
}

TEST_P(PointToPoint, moves_every_size_whole_where_memory_is_read) {
  const Setting attach("FCCL_CROSS_MEMORY_ATTACH", "on");
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    for (const size_t bytes : sizes_of_transfers()) EXPECT_EQ(pass_on(seat, comm, {.count = bytes}), "");
  });
}

TEST_P(PointToPoint, goes_through_the_smallest_slots) {
  const Setting mailbox("FCCL_MAILBOX_BYTES", "64"), slots("FCCL_SLOT_BYTES", "64"), attach("FCCL_CROSS_MEMORY_ATTACH", "off");
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    for (const size_t bytes : {63, 64, 65, 127, 128, 129, 20'000}) EXPECT_EQ(pass_on(seat, comm, {.count = bytes}), "");
  });
}

TEST_P(PointToPoint, moves_every_type) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    for (int dtype = 0; dtype < fcclNumTypes; ++dtype)
      EXPECT_EQ(pass_on(seat, comm, {.count = 1001, .dtype = static_cast<fcclDataType_t>(dtype)}), "");
  });
}

TEST_P(PointToPoint, blocks_until_a_long_send_is_received) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    if (seat.ranks < 2) return;
    const Comm comm(seat);
    for (int iteration = 0; iteration < 20; ++iteration) {
      Parcel there({.from = 0, .to = 1, .count = 300'000, .iteration = iteration});
      Parcel back({.from = 1, .to = 0, .count = 300'000, .iteration = iteration});
      if (seat.rank == 0) {
        EXPECT_TRUE(succeeded(there.send(comm)));
        std::fill_n(there.data(), 300'000, std::byte{0});
        EXPECT_TRUE(succeeded(back.receive(comm)));
        EXPECT_EQ(back.fault(), "");
      } else if (seat.rank == 1) {
        EXPECT_TRUE(succeeded(there.receive(comm)));
        EXPECT_EQ(there.fault(), "");
        EXPECT_TRUE(succeeded(back.send(comm)));
      }
    }
  });
}

TEST_P(PointToPoint, lets_short_sends_go_before_anybody_receives) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    std::vector<std::unique_ptr<Parcel>> sent;
    for (int peer = 0; peer < seat.ranks; ++peer)
      for (int i = 0; i < 8; ++i) {
        Parcel parcel({.from = seat.rank, .to = peer, .count = static_cast<size_t>(i * 100), .iteration = i});
        EXPECT_TRUE(succeeded(parcel.send(comm)));
      }
    for (int peer = 0; peer < seat.ranks; ++peer)
      for (int i = 0; i < 8; ++i) {
        Parcel parcel({.from = peer, .to = seat.rank, .count = static_cast<size_t>(i * 100), .iteration = i});
        EXPECT_TRUE(succeeded(parcel.receive(comm)));
        EXPECT_EQ(parcel.fault(), "");
      }
  });
}

// One stream per send, so that only the order of issue can keep them apart.
TEST_P(PointToPoint, keeps_the_order_of_a_pair_whatever_the_streams) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    constexpr int kMessages = 40;
    const Comm comm(seat);
    std::array<TestStream, kMessages> sends, receives;
    std::vector<std::unique_ptr<Parcel>> sent, received;
    for (int i = 0; i < kMessages; ++i) {
      const size_t count = i % 3 == 0 ? 10'000 : 100;
      sent.push_back(std::make_unique<Parcel>(Route{.from = seat.rank, .to = after(seat), .count = count, .iteration = i}));
      received.push_back(
          std::make_unique<Parcel>(Route{.from = before(seat), .to = seat.rank, .count = count, .iteration = i}));
      EXPECT_TRUE(succeeded(received[i]->receive(comm, receives[i])));
      EXPECT_TRUE(succeeded(sent[i]->send(comm, sends[i])));
    }
    for (int i = 0; i < kMessages; ++i) {
      EXPECT_TRUE(succeeded(fcclStreamSynchronize(sends[i])));
      EXPECT_TRUE(succeeded(fcclStreamSynchronize(receives[i])));
      EXPECT_EQ(received[i]->fault(), "");
    }
  });
}

TEST_P(PointToPoint, finds_tags_in_any_order) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    constexpr int kTags = 60;
    const Comm comm(seat);
    std::array<TestStream, kTags> streams;
    std::vector<std::unique_ptr<Parcel>> sent;
    const auto count_of = [](int tag) { return tag % 4 == 0 ? size_t{20'000} : static_cast<size_t>(tag); };
    for (int tag = 0; tag < kTags; ++tag) {
      sent.push_back(std::make_unique<Parcel>(Route{seat.rank, after(seat), count_of(tag), fcclUint8, tag}));
      EXPECT_TRUE(succeeded(sent.back()->send(comm, streams[tag])));
    }
    for (int tag = kTags - 1; tag >= 0; --tag) {
      Parcel received({before(seat), seat.rank, count_of(tag), fcclUint8, tag});
      EXPECT_TRUE(succeeded(received.receive(comm)));
      EXPECT_EQ(received.fault(), "");
    }
    for (const TestStream& stream : streams) EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
  });
}

TEST_P(PointToPoint, keeps_what_has_no_tag_apart_from_what_has_one) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    Parcel tagged({seat.rank, after(seat), 10, fcclUint8, 0}), untagged({seat.rank, after(seat), 20});
    EXPECT_TRUE(succeeded(tagged.send(comm)));
    EXPECT_TRUE(succeeded(untagged.send(comm)));
    Parcel second({before(seat), seat.rank, 20}), first({before(seat), seat.rank, 10, fcclUint8, 0});
    EXPECT_TRUE(succeeded(second.receive(comm)));
    EXPECT_TRUE(succeeded(first.receive(comm)));
    EXPECT_EQ(first.fault() + second.fault(), "");
  });
}

TEST_P(PointToPoint, from_any_source_tells_whose_it_was) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    constexpr int kEach = 3;
    // Another tag for each: a rank that has sent goes on to the next size while others still send.
    for (const auto& [base, tag] : {std::pair<size_t, int>{1000, 5}, {100'000, 6}}) {
      if (seat.rank != 0) {
        for (int i = 0; i < kEach; ++i) {
          Parcel parcel({.from = seat.rank, .to = 0, .count = base, .tag = tag, .iteration = i});
          EXPECT_TRUE(succeeded(parcel.send(comm)));
        }
        continue;
      }
      std::vector<int> seen(static_cast<size_t>(seat.ranks), 0);
      for (int i = 0; i < kEach * (seat.ranks - 1); ++i) {
        int source = -7;
        GuardedBuffer buffer(base, 0);
        EXPECT_TRUE(succeeded(fcclRecvTagged(buffer.data(), base, fcclUint8, FCCL_ANY_SOURCE, tag, &source, comm, nullptr)));
        ASSERT_TRUE(source > 0 && source < seat.ranks) << source;
        const Route route{.from = source, .to = 0, .count = base, .tag = tag, .iteration = seen[source]++};
        for (size_t at = 0; at < base; ++at) ASSERT_EQ(buffer.data()[at], route.byte_at(at)) << source << " " << at;
      }
    }
  });
}

TEST_P(PointToPoint, takes_no_part_in_the_order_of_collectives) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    if (seat.ranks < 2) return;
    const Comm comm(seat);
    const TestStream stream;
    const Recipe reduce{.collective = fcclCollAllReduce, .dtype = fcclInt32, .count = 1000};
    Parcel early({.from = 1, .to = 0, .count = 50'000}), late({.from = 1, .to = 0, .count = 50'000, .iteration = 1});
    if (seat.rank == 0) {
      EXPECT_TRUE(succeeded(early.receive(comm, stream)));
      EXPECT_EQ(try_collective(reduce, seat.rank, seat.ranks, comm), "");
      EXPECT_TRUE(succeeded(late.receive(comm)));
      EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
      EXPECT_EQ(early.fault() + late.fault(), "");
    } else {
      EXPECT_EQ(try_collective(reduce, seat.rank, seat.ranks, comm), "");
      if (seat.rank == 1) {
        EXPECT_TRUE(succeeded(early.send(comm)));
        EXPECT_TRUE(succeeded(late.send(comm)));
      }
    }
    EXPECT_EQ(try_collective(reduce, seat.rank, seat.ranks, comm), "");
  });
}

TEST_P(PointToPoint, with_one_peer_goes_on_while_another_one_is_late) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    if (seat.ranks < 3) return;
    const Comm comm(seat);
    Parcel late({.from = 1, .to = 0, .count = 3'000'000});
    if (seat.rank == 0) {
      const TestStream stream;
      EXPECT_TRUE(succeeded(late.receive(comm, stream)));
      for (int i = 0; i < 20; ++i) {
        Parcel parcel({.from = 2, .to = 0, .count = 100'000, .iteration = i});
        EXPECT_TRUE(succeeded(parcel.receive(comm)));
        EXPECT_EQ(parcel.fault(), "");
      }
      EXPECT_EQ(fcclStreamQuery(stream), fcclInProgress);
      seat.meet();
      EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
      EXPECT_EQ(late.fault(), "");
      return;
    }
    for (int i = 0; i < 20 && seat.rank == 2; ++i) {
      Parcel parcel({.from = 2, .to = 0, .count = 100'000, .iteration = i});
      EXPECT_TRUE(succeeded(parcel.send(comm)));
    }
    seat.meet();
    if (seat.rank == 1) {
      EXPECT_TRUE(succeeded(late.send(comm)));
    }
  });
}

TEST_P(PointToPoint, on_a_stream_sends_what_a_host_function_before_it_wrote) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const TestStream stream;
    static thread_local std::array<int, 3000> value;
    value.fill(-1);
    const auto write = [](void* data) { static_cast<std::array<int, 3000>*>(data)->fill(77); };
    EXPECT_TRUE(succeeded(fcclLaunchHostFunc(stream, write, &value)));
    EXPECT_TRUE(succeeded(fcclSend(value.data(), value.size(), fcclInt32, after(seat), comm, stream)));
    std::array<int, 3000> got{};
    EXPECT_TRUE(succeeded(fcclRecv(got.data(), got.size(), fcclInt32, before(seat), comm, nullptr)));
    EXPECT_EQ(std::ranges::count(got, 77), 3000);
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
  });
}

TEST_P(PointToPoint, is_counted_where_it_ended) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    for (const size_t bytes : {10, 100'000}) EXPECT_EQ(pass_on(seat, comm, {.count = bytes}), "");
    for (const fcclColl_t kind : {fcclCollSend, fcclCollRecv}) {
      fcclCounter_t counter{};
      EXPECT_TRUE(succeeded(fcclCommGetCounter(comm, kind, &counter)));
      EXPECT_EQ(counter.calls, 2U) << fcclCollName(kind);
      EXPECT_EQ(counter.bytes, 100'010U) << fcclCollName(kind);
      EXPECT_GT(counter.seconds, 0) << fcclCollName(kind);
    }
  });
}

TEST_P(PointToPoint, is_served_to_the_end_when_its_communicator_is_destroyed) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const TestStream sends, receives;
    Comm comm(seat);
    Parcel sent({.from = seat.rank, .to = after(seat), .count = 1'000'000});
    Parcel received({.from = before(seat), .to = seat.rank, .count = 1'000'000});
    EXPECT_TRUE(succeeded(sent.send(comm, sends)));
    EXPECT_TRUE(succeeded(received.receive(comm, receives)));
    EXPECT_TRUE(succeeded(fcclCommDestroy(comm.release())));
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(receives)));
    EXPECT_EQ(received.fault(), "");
  });
}

TEST_P(PointToPoint, reaches_a_rank_that_receives_after_the_sender_has_left) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    Comm comm(seat);
    Parcel parcel({.from = 0, .to = seat.ranks - 1, .count = 3000});
    if (seat.rank == 0) {
      EXPECT_TRUE(succeeded(parcel.send(comm)));
      if (seat.ranks > 1) {
        EXPECT_TRUE(succeeded(fcclCommDestroy(comm.release())));
      }
    }
    seat.meet();
    if (seat.rank != seat.ranks - 1) return;
    Parcel received({.from = 0, .to = seat.ranks - 1, .count = 3000});
    EXPECT_TRUE(succeeded(received.receive(comm)));
    EXPECT_EQ(received.fault(), "");
  });
}

INSTANTIATE_TEST_SUITE_P(As, PointToPoint, ::testing::ValuesIn(sizes(1, 3)), name_of_size);
INSTANTIATE_TEST_SUITE_P(MoreThanCores, PointToPoint, ::testing::Values(Size{RanksAs::threads, 5}), name_of_size);

}  // namespace
}  // namespace fccl::core::testing
