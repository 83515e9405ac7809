// Tests of the errors that a user gets if a transport's shared library cannot be loaded.
#include "wire/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

namespace fccl::core {

namespace {

using testing::AllOf;
using testing::HasSubstr;

void of_application(int) {}

TEST(PluginTest, a_library_that_is_nowhere_is_named_with_where_it_was_looked_for) {
  const auto opened = open_transport("libfccl_nowhere.so", {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, fcclSystemError);
  EXPECT_THAT(opened.error().message,
              AllOf(HasSubstr("there is no libfccl_nowhere.so in /"), HasSubstr("the only place"), HasSubstr("install")));
}

// libc is where the loader looks, and loaded as well.
TEST(PluginTest, a_library_that_the_loader_would_find_elsewhere_is_not_looked_for) {
  const auto opened = open_transport("libc.so.6", {});
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("there is no libc.so.6 in /"));
}

TEST(PluginTest, a_missing_libfabric_is_told_with_how_to_install_it) {
  const auto opened = open_transport("libneeds_libfabric.so", {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, fcclSystemError);
  EXPECT_THAT(opened.error().message, AllOf(HasSubstr("libfabric is not installed"), HasSubstr("apt-get install libfabric1"),
                                            HasSubstr("dnf install libfabric"), HasSubstr("EFA installer")));
}

// A message says the setting, the path, what was observed, and what to try.
void expect_refused(const std::string& library, const std::string& observed, const std::string& advice) {
  const auto listed = list_nics(library, {});
  const auto opened = open_transport(library, {});
  ASSERT_FALSE(listed);
  ASSERT_FALSE(opened);
  for (const Error& error : {listed.error(), opened.error()}) {
    EXPECT_EQ(error.code, fcclSystemError);
    EXPECT_THAT(error.message, AllOf(HasSubstr("cannot reach other hosts: FCCL_TRANSPORT_PLUGIN=" + library + " "),
                                     HasSubstr(observed), HasSubstr(advice)));
  }
}

TEST(PluginTest, a_path_without_a_file_is_told_with_the_setting_and_what_to_give) {
  expect_refused("/nowhere/libnet.so", "cannot be found on this host (No such file or directory)",
                 "give the path that the shared library of a transport has on every host, or unset the variable");
}

TEST(PluginTest, a_file_that_is_no_library_is_told_with_why_it_cannot_be_loaded) {
  expect_refused("/proc/self/status", "cannot be loaded (/proc/self/status: ", "name another library, or unset the variable");
}

TEST(PluginTest, a_library_whose_own_needs_are_missing_is_told_with_the_one_that_is) {
  expect_refused(FCCL_LIBRARY_WITHOUT_LIBFABRIC, "cannot be loaded (libfabric.so.0: ", "see by ldd what it lacks");
}

TEST(PluginTest, a_library_that_is_no_transport_is_told_with_the_symbol_that_it_lacks) {
  expect_refused(FCCL_LIBRARY_OF_ANOTHER_KIND, "is not a transport of FCCL, as it has no fccl_transport_plugin",
                 "let this one define it as docs/how_to/write_a_transport.md says");
}

TEST(PluginTest, a_library_of_another_contract_is_told_with_both_and_none_of_its_functions_runs) {
  expect_refused(FCCL_LIBRARY_OF_ANOTHER_CONTRACT,
                 std::string(R"(keeps "transport contract 1", but this libfccl has ")") + kTransportContract + "\"",
                 "build it with the headers that were installed with this libfccl");
}

struct Odd {
  const char* provider;
  const char* observed;
};

class OddOffer : public testing::TestWithParam<Odd> {};

TEST_P(OddOffer, is_refused_by_the_name_of_the_plug_in) {
  const auto listed = list_nics(FCCL_ODD_PLUGIN, {.provider = GetParam().provider, .names = {}});
  ASSERT_FALSE(listed);
  EXPECT_THAT(listed.error().message, AllOf(HasSubstr("FCCL_TRANSPORT_PLUGIN=" FCCL_ODD_PLUGIN " offers "),
                                            HasSubstr(GetParam().observed), HasSubstr("correct its list_nics")));
}

INSTANTIATE_TEST_SUITE_P(
    Each, OddOffer,
    testing::Values(Odd{"no-costs", "costs of its provider no-costs that make no sense: latency is missing (0 s)"},
                    Odd{"no-latency", "latency is missing (0 s)"}, Odd{"negative", "message is -1e-06 s"},
                    Odd{"nan", "wire_byte is nan s"}, Odd{"bad-name", "a provider with a name that is not made of 1 to 31"},
                    Odd{"no-nics", "no NIC of its provider no-nics"}, Odd{"same-names", "NICs of which two have the name a"},
                    Odd{"no-name", "NICs of which one has no name"}),
    [](const auto& info) {
      std::string name = info.param.provider;
      std::ranges::replace(name, '-', '_');
      return name;
    });

TEST(PluginTest, a_good_offer_is_taken_with_its_provider_and_its_costs) {
  const auto listed = list_nics(FCCL_ODD_PLUGIN, {.provider = "my-net.2", .names = {}});
  ASSERT_TRUE(listed) << listed.error().message;
  EXPECT_EQ(listed->provider, "my-net.2");
  EXPECT_EQ(listed->nics.size(), 2u);
  EXPECT_EQ(listed->costs.wire_byte, 1e-9);
}

TEST(PluginTest, a_provider_that_the_plug_in_does_not_have_is_told_with_the_setting_and_the_one_that_it_has) {
  const auto listed = list_nics(FCCL_ODD_PLUGIN, {.provider = "another", .names = {}});
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, fcclInvalidUsage);
  EXPECT_THAT(listed.error().message, HasSubstr("FCCL_TRANSPORT_PLUGIN=" FCCL_ODD_PLUGIN
                                                " has the provider my-net, but FCCL_TRANSPORT=another asks for another"));
}

TEST(PluginTest, a_transport_that_cannot_be_worked_with_is_refused_by_the_name_of_the_plug_in) {
  const auto says = [](const char* provider, std::vector<std::string> nics) {
    const auto opened = open_transport(FCCL_ODD_PLUGIN, {.provider = provider, .nics = std::move(nics)});
    return opened ? (*opened)->description() : opened.error().message;
  };
  const std::string plugin = "FCCL_TRANSPORT_PLUGIN=" FCCL_ODD_PLUGIN " opens ";
  EXPECT_EQ(says("idle", {"a", "b"}), "an idle transport");
  EXPECT_THAT(says("nothing", {"a", "b"}), HasSubstr(plugin + "no transport and gives no error"));
  EXPECT_THAT(says("idle", {"a"}), HasSubstr(plugin + "a transport with 2 rails for 1 NICs"));
  EXPECT_THAT(says("no-window", {"a", "b"}), HasSubstr(plugin + "a transport that holds 0 operations"));
}

// A plug-in of the contract's number was compiled against these.
TEST(PluginTest, the_types_of_the_contract_are_laid_out_as_its_number_says) {
  EXPECT_THAT(kTransportContract, testing::StartsWith("transport contract 3, "));
  EXPECT_EQ(sizeof(MessageCode), 2u);  // in contract 1 an Error began with an fcclResult_t, of 4 bytes
  EXPECT_EQ(sizeof(Error), sizeof(std::string) + 8);
  EXPECT_EQ(sizeof(TransportLimits), 32u);
  EXPECT_EQ(sizeof(Operation), 64u);
  EXPECT_EQ(sizeof(Completion), 40u);
  EXPECT_EQ(sizeof(CostConstants), 40u);
  EXPECT_EQ(sizeof(Nic), sizeof(std::string) + sizeof(Place) + 8);
  EXPECT_EQ(sizeof(OfferedNics), sizeof(std::string) + sizeof(std::vector<Nic>) + 40);
  EXPECT_EQ(sizeof(TransportRequest), sizeof(std::string) + sizeof(std::vector<std::string>) + 8);
}

TEST(PluginTest, what_a_library_does_to_signals_is_undone) {
  ::signal(SIGTERM, of_application);
  ::signal(SIGINT, of_application);
  const auto listed = list_nics(FCCL_LIBRARY_THAT_TAKES_SIGNALS, {});
  EXPECT_EQ(::signal(SIGTERM, SIG_DFL), of_application);
  EXPECT_EQ(::signal(SIGINT, SIG_DFL), of_application);
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().message, "it has no NICs");
}

}  // namespace

}  // namespace fccl::core
