// Sends and receives between hosts: every rank reaches every rank, whatever their places, and what cannot end well says why.
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "processes/hosts.h"
#include "processes/parcel.h"
#include "processes/test_stream.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;

class PointToPointAcrossHosts : public ::testing::TestWithParam<OnHosts> {};

// Beside a notice, in one slice of the network, in more than its window.
TEST_P(PointToPointAcrossHosts, moves_every_size_between_every_two_ranks) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    int iteration = 0;
    for (const size_t count :
         {size_t{0}, size_t{1}, size_t{4064}, size_t{4096}, size_t{4097}, size_t{300'001}, size_t{2'500'001}}) {
      ++iteration;
      std::vector<std::unique_ptr<Parcel>> sent, received;
      EXPECT_TRUE(succeeded(fcclGroupStart()));
      for (int peer = 0; peer < seat.ranks; ++peer) {
        sent.push_back(std::make_unique<Parcel>(Route{.from = seat.rank, .to = peer, .count = count, .iteration = iteration}));
        received.push_back(
            std::make_unique<Parcel>(Route{.from = peer, .to = seat.rank, .count = count, .iteration = iteration}));
        EXPECT_TRUE(succeeded(sent.back()->send(comm)));
        EXPECT_TRUE(succeeded(received.back()->receive(comm)));
      }
      EXPECT_TRUE(succeeded(fcclGroupEnd()));
      for (const auto& parcel : received) EXPECT_EQ(parcel->fault(), "");
    }
  });
}

TEST_P(PointToPointAcrossHosts, sends_a_hundred_to_each_rank_in_order) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    std::vector<std::unique_ptr<Parcel>> parcels;
    EXPECT_TRUE(succeeded(fcclGroupStart()));
    for (int peer = 0; peer < seat.ranks; ++peer)
      for (int i = 0; i < 100; ++i) {
        const size_t count = i % 5 == 0 ? 6000 : 40;
        parcels.push_back(std::make_unique<Parcel>(Route{.from = seat.rank, .to = peer, .count = count, .iteration = i}));
        EXPECT_TRUE(succeeded(parcels.back()->send(comm)));
        parcels.push_back(std::make_unique<Parcel>(Route{.from = peer, .to = seat.rank, .count = count, .iteration = i}));
        EXPECT_TRUE(succeeded(parcels.back()->receive(comm)));
      }
    EXPECT_TRUE(succeeded(fcclGroupEnd()));
    for (const auto& parcel : parcels) EXPECT_EQ(parcel->fault(), "");
  });
}

TEST_P(PointToPointAcrossHosts, finds_tags_and_tells_sources) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    constexpr int kTags = 20;
    if (seat.rank == 0) {
      for (int tag = kTags - 1; tag >= 0; --tag)
        for (int peer = 1; peer < seat.ranks; ++peer) {
          int source = -9;
          std::vector<std::byte> buffer(tag % 3 == 0 ? 50'000 : 500);
          EXPECT_TRUE(
              succeeded(fcclRecvTagged(buffer.data(), buffer.size(), fcclUint8, FCCL_ANY_SOURCE, tag, &source, comm, nullptr)));
          ASSERT_GT(source, 0);
          const Route route{.from = source, .to = 0, .count = buffer.size(), .tag = tag};
          for (size_t i = 0; i < buffer.size(); ++i) ASSERT_EQ(buffer[i], route.byte_at(i));
        }
    } else {
      std::vector<std::unique_ptr<Parcel>> sent;
      std::vector<std::unique_ptr<TestStream>> streams;
      for (int tag = 0; tag < kTags; ++tag) {
        sent.push_back(std::make_unique<Parcel>(
            Route{.from = seat.rank, .to = 0, .count = static_cast<size_t>(tag % 3 == 0 ? 50'000 : 500), .tag = tag}));
        streams.push_back(std::make_unique<TestStream>());
        EXPECT_TRUE(succeeded(sent.back()->send(comm, *streams.back())));
      }
      for (const auto& stream : streams) EXPECT_TRUE(succeeded(fcclStreamSynchronize(*stream)));
    }
    EXPECT_TRUE(succeeded(fcclBarrier(comm, nullptr)));
  });
}

TEST_P(PointToPointAcrossHosts, takes_no_part_in_the_order_of_collectives) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    const TestStream stream;
    const int last = seat.ranks - 1;
    Parcel parcel({.from = last, .to = 0, .count = 700'000});
    if (seat.rank == 0) {
      EXPECT_TRUE(succeeded(parcel.receive(comm, stream)));
    }
    EXPECT_TRUE(succeeded(reduce(comm, 100'000)));
    if (seat.rank == last) {
      EXPECT_TRUE(succeeded(parcel.send(comm)));
    }
    EXPECT_TRUE(succeeded(reduce(comm, 100'000)));
    EXPECT_TRUE(succeeded(fcclStreamSynchronize(stream)));
    if (seat.rank == 0) {
      EXPECT_EQ(parcel.fault(), "");
    }
  });
}

// A process ends at once after its send.
TEST_P(PointToPointAcrossHosts, brings_what_a_rank_sent_before_it_left) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    Comm comm(seat);
    const int last = seat.ranks - 1;
    Parcel small({.from = last, .to = 0, .count = 3000}), large({.from = last, .to = 0, .count = 900'000});
    if (seat.rank == last) {
      EXPECT_TRUE(succeeded(large.send(comm)));
      EXPECT_TRUE(succeeded(small.send(comm)));
      EXPECT_TRUE(succeeded(fcclCommDestroy(comm.release())));
      seat.board.notes[0] = 1;
      return;
    }
    if (seat.rank > 0) return;
    EXPECT_TRUE(succeeded(large.receive(comm)));
    while (seat.board.notes[0] == 0) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(20ms);
    EXPECT_TRUE(succeeded(small.receive(comm)));
    EXPECT_EQ(large.fault() + small.fault(), "");
  });
}

TEST_P(PointToPointAcrossHosts, that_differs_shows_both_ends) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    const Comm comm(seat);
    // A rank that is still on its way out of init would have the failure there.
    seat.meet();
    const int last = seat.ranks - 1;
    Parcel parcel({.from = 0, .to = last, .count = seat.rank == 0 ? size_t{100'000} : size_t{100'001}});
    fcclResult_t result = fcclSuccess;
    if (seat.rank == 0) result = parcel.send(comm);
    if (seat.rank == last) result = parcel.receive(comm);
    if (result == fcclSuccess) result = reduce_until_failure(comm, 10);
    EXPECT_EQ(result, fcclInvalidUsage);
    const std::string text = fcclGetLastError(comm);
    EXPECT_NE(text.find("Send of 100000 uint8 to rank " + std::to_string(last)), std::string::npos) << text;
    EXPECT_NE(text.find("Recv of 100001 uint8 from rank 0"), std::string::npos) << text;
    seat.meet();
  });
}

TEST_P(PointToPointAcrossHosts, that_nobody_receives_ends_at_the_deadline) {
  run_ranks(GetParam().launch(), [](const Seat& seat) {
    fcclConfig_t config = config_of_tests();
    config.timeoutMs = 300 * kSlowdown;
    const Comm comm(seat, config);
    const int last = seat.ranks - 1;
    if (seat.rank == 0) {
      Parcel parcel({.from = 0, .to = last, .count = 100'000});
      EXPECT_EQ(parcel.send(comm), fcclTimeout);
      const std::string text = fcclGetLastError(comm);
      EXPECT_NE(text.find("rank 0 has waited"), std::string::npos) << text;
      EXPECT_NE(text.find(name_of_rank(last)), std::string::npos) << text;
      EXPECT_NE(text.find("Send of 100000 uint8"), std::string::npos) << text;
    }
    seat.meet();
  });
}

TEST_P(PointToPointAcrossHosts, names_a_rank_that_dies) {
  Launch launch = GetParam().launch();
  launch.killed = {launch.ranks - 1};
  run_ranks(launch, [](const Seat& seat) {
    const Comm comm(seat);
    const int last = seat.ranks - 1;
    if (seat.rank == last) {
      Parcel parcel({.from = last, .to = 0, .count = 4'000'000});
      EXPECT_TRUE(succeeded(parcel.send(comm)));
      std::this_thread::sleep_for(50ms);
      seat.board.notes[0] = now_ns();
      raise(SIGKILL);
    }
    fcclResult_t result = fcclSuccess;
    if (seat.rank == 0) {
      Parcel first({.from = last, .to = 0, .count = 4'000'000}), second({.from = last, .to = 0, .count = 4'000'000});
      EXPECT_TRUE(succeeded(first.receive(comm)));
      EXPECT_EQ(first.fault(), "");
      result = second.receive(comm);
    } else {
      result = fcclBarrier(comm, nullptr);
    }
    EXPECT_TRUE(in_time(seat.board.notes[0], 2000));
    expect_failure(comm, result, fcclRemoteError, {last});
  });
}

INSTANTIATE_TEST_SUITE_P(Of, PointToPointAcrossHosts, ::testing::Values(kTwoAndTwo, kThreeAndOne, kTwoAndOneAndOne),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fccl::core::testing
