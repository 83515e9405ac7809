// Tests of fccl-info report on a job of which a rank died: it says what failed, and holds no secret in any writing.
#include <gtest/gtest.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "channels/unique_id.h"
#include "processes/ranks.h"

namespace fccl::core::testing {
namespace {

using Bytes = std::span<const unsigned char>;

std::string report() {
  FILE* output = ::popen(FCCL_TEST_INFO " report 2>&1", "r");
  std::string text;
  for (int c; output != nullptr && (c = std::fgetc(output)) != EOF;) text += static_cast<char>(c);
  EXPECT_TRUE(output != nullptr && ::pclose(output) == 0) << text;
  return text;
}

std::string raw(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

std::string hex(Bytes bytes) {
  std::string text(2 * bytes.size() + 1, '\0');
  ::sodium_bin2hex(text.data(), text.size(), bytes.data(), bytes.size());
  text.pop_back();
  return text;
}

std::string base64(Bytes bytes, int variant = sodium_base64_VARIANT_ORIGINAL_NO_PADDING) {
  std::string text(sodium_base64_ENCODED_LEN(bytes.size(), variant), '\0');
  ::sodium_bin2base64(text.data(), text.size(), bytes.data(), bytes.size(), variant);
  text.pop_back();
  return text;
}

// Every part of nine bytes, in every writing; nine of them fill whole letters of base64, wherever the part begins. Parts that
// are mostly zeros are no secret.
std::vector<std::string> writings_of(Bytes secret) {
  constexpr size_t kPart = 9;
  std::vector<std::string> writings;
  for (size_t at = 0; at + kPart <= secret.size(); ++at) {
    const Bytes part = secret.subspan(at, kPart);
    if (std::ranges::count(part, 0) > 5) continue;
    std::string large = hex(part);
    std::ranges::transform(large, large.begin(), [](unsigned char letter) { return std::toupper(letter); });
    writings.insert(writings.end(),
                    {raw(part), hex(part), large, base64(part), base64(part, sodium_base64_VARIANT_URLSAFE_NO_PADDING)});
  }
  return writings;
}

void expect_without(const std::string& text, Bytes secret) {
  const std::vector<std::string> writings = writings_of(secret);
  EXPECT_GT(writings.size(), 50U);
  for (const std::string& writing : writings) EXPECT_EQ(text.find(writing), std::string::npos) << writing << "\n" << text;
}

TEST(Report, of_a_failed_job_says_why_and_holds_neither_the_unique_id_nor_its_key) {
  run_ranks({.as = RanksAs::processes, .ranks = 2, .killed = {1}}, [](const Seat& seat) {
    const Comm comm(seat);
    const fcclUniqueId id = seat.board.id;
    seat.meet();
    if (seat.rank == 1) std::raise(SIGKILL);
    char own = 0, all[2];
    ASSERT_NE(fcclAllGather(&own, all, 1, fcclUint8, comm, nullptr), fcclSuccess);
    const Bytes of_id(reinterpret_cast<const unsigned char*>(id.internal), sizeof id.internal);
    const auto known = from_c(id);
    ASSERT_TRUE(known);
    // Users hand ids on by variables of these names.
    const Setting variables[] = {{"FCCL_COMM_ID", hex(of_id)},
                                 {"NCCL_COMM_ID", base64(of_id)},
                                 {"FCCL_HOST_ID", hex(known->key)},
                                 {"FI_SECRET", base64(known->key)},
                                 {"FCCL_LOG", "info"}};
    const std::string text = report();
    expect_without(text, of_id);
    expect_without(text, known->key);
    for (const std::string& said :
         {std::string("  FCCL_COMM_ID is set\n"), std::string("  FCCL_HOST_ID is set\n"), std::string("  FCCL_LOG=info\n"),
          std::to_string(::getpid()) + ", ", std::string(" s ago: rank 1 (pid "), std::string("ulimit -l"),
          std::string("fccl_errors_total{pid=\"") + std::to_string(::getpid()) + "\",kind=\"remote\"} 1\n"})
      EXPECT_NE(text.find(said), std::string::npos) << said << "\n" << text;
  });
}

}  // namespace
}  // namespace fccl::core::testing
