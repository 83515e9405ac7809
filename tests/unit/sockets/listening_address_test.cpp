// Tests which interface and port a listener takes, and the text that says why.
#include "sockets/listening_address.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "settings/settings.h"
#include "sockets/network_interface.h"

namespace fccl::core {
namespace {

InterfaceAddress interface(const std::string& name, uint8_t last_byte) {
  // This network is reserved for documentation, so no route of this host leads over it.
  return {name, {false, {198, 51, 100, last_byte}, 0}, name == "lo", name == "docker0"};
}

// The addresses in the kernel's order.
const std::vector<InterfaceAddress> kAll = {interface("lo", 1), interface("docker0", 2), interface("eth1", 3),
                                            interface("eth10", 4), interface("ib0", 5)};

std::string chosen_by(std::string Settings::* variable, const std::string& text) {
  Settings settings;
  settings.*variable = text;
  const auto chosen = choose_address(settings, kAll);
  return chosen ? describe(chosen->interface_name, chosen->by) : chosen.error().message;
}

std::string chosen_by(const std::string& text) { return chosen_by(&Settings::interface_name, text); }

TEST(ListeningAddress, is_of_the_first_interface_that_is_no_loopback_and_no_bridge_where_nobody_says_more) {
  EXPECT_EQ(chosen_by(""), "eth1, the first that is up");
}

TEST(ListeningAddress, is_of_an_interface_whose_name_begins_as_was_said) {
  EXPECT_EQ(chosen_by("ib"), "ib0, which FCCL_SOCKET_IFNAME names");
  EXPECT_EQ(chosen_by("eth"), "eth1, which FCCL_SOCKET_IFNAME names");
}

TEST(ListeningAddress, is_of_the_interface_whose_whole_name_was_said_before_one_that_begins_so) {
  EXPECT_EQ(chosen_by("eth10"), "eth10, which FCCL_SOCKET_IFNAME names");
  const std::vector<InterfaceAddress> other_order = {interface("eth10", 4), interface("eth1", 3)};
  Settings settings;
  settings.interface_name = "eth1";
  EXPECT_EQ(choose_address(settings, other_order)->interface_name, "eth1");
}

TEST(ListeningAddress, is_of_the_first_name_of_a_list_that_fits) {
  EXPECT_EQ(chosen_by("=ens5,ib0,eth1"), "ib0, which FCCL_SOCKET_IFNAME names");
  EXPECT_EQ(chosen_by("docker,eth"), "docker0, which FCCL_SOCKET_IFNAME names");
}

TEST(ListeningAddress, of_whole_names_takes_no_beginning_for_one) {
  EXPECT_NE(chosen_by("=eth").find("FCCL_SOCKET_IFNAME==eth fits no network interface"), std::string::npos)
      << chosen_by("=eth");
}

TEST(ListeningAddress, is_of_none_of_those_that_are_left_out) {
  EXPECT_EQ(chosen_by("^docker,lo,veth"), "eth1, the first that is up");
  EXPECT_EQ(chosen_by("^eth"), "ib0, the first that is up");
  EXPECT_EQ(chosen_by("^=eth1"), "eth10, the first that is up");
}

TEST(ListeningAddress, that_no_interface_has_is_an_error_that_names_those_there_are) {
  for (const char* text : {"nonesuch0", "^lo,docker,eth,ib"}) {
    const std::string said = chosen_by(text);
    EXPECT_NE(said.find(std::string("FCCL_SOCKET_IFNAME=") + text), std::string::npos) << said;
    EXPECT_NE(said.find("docker0 (198.51.100.2), eth1 (198.51.100.3)"), std::string::npos) << said;
  }
}

TEST(ListeningAddress, follows_the_variables_of_nccl_and_gloo_where_its_own_is_unset) {
  EXPECT_EQ(chosen_by(&Settings::nccl_interface_name, "^docker,lo,eth"), "ib0, the first that is up");
  EXPECT_EQ(chosen_by(&Settings::nccl_interface_name, "ib"), "ib0, which NCCL_SOCKET_IFNAME names");
  EXPECT_EQ(chosen_by(&Settings::gloo_interface_name, "ib0"), "ib0, which GLOO_SOCKET_IFNAME names");
  Settings all;
  all.interface_name = "eth10";
  all.nccl_interface_name = "ib0";
  all.gloo_interface_name = "eth1";
  EXPECT_EQ(choose_address(all, kAll)->interface_name, "eth10");
  all.interface_name = "";
  EXPECT_EQ(choose_address(all, kAll)->interface_name, "ib0");
}

TEST(ListeningAddress, is_chosen_as_if_they_were_unset_where_what_nccl_and_gloo_are_told_fits_nothing) {
  EXPECT_EQ(chosen_by(&Settings::nccl_interface_name, "^lo,docker,eth,ib"), "eth1, the first that is up");
  EXPECT_EQ(chosen_by(&Settings::gloo_interface_name, "eth"), "eth1, the first that is up");
}

TEST(ListeningAddress, of_this_host_is_found_without_a_word) {
  const auto chosen = choose_address(Settings{});
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_FALSE(chosen->interface_name.empty());
}

TEST(ListeningAddress, is_not_of_the_loopback_because_the_name_of_the_master_stands_for_that) {
  Settings settings;
  settings.master_address = "localhost";
  const auto chosen = choose_address(settings);
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_NE(chosen->by, ChosenBy::master_address);
}

TEST(ListeningAddress, is_of_the_interface_that_reaches_the_master) {
  const auto addresses = interface_addresses();
  ASSERT_TRUE(addresses);
  for (const InterfaceAddress& each : *addresses) {
    if (each.is_loopback) continue;
    Settings settings;
    settings.master_address = host_text(each.address);
    const auto chosen = choose_address(settings);
    ASSERT_TRUE(chosen) << chosen.error().message;
    EXPECT_EQ(chosen->address, each.address) << describe(chosen->interface_name, chosen->by);
    EXPECT_EQ(chosen->by, ChosenBy::master_address);
    return;
  }
  GTEST_SKIP() << "this host has nothing but its loopback";
}

TEST(ListeningAddress, takes_a_port_of_those_that_are_allowed_and_says_when_none_is_free) {
  Settings settings;
  settings.interface_name = "lo";
  const auto where = choose_address(settings);
  ASSERT_TRUE(where) << where.error().message;
  const Result<Descriptor> taken = listen_tcp(where->address);
  ASSERT_TRUE(taken);
  const uint16_t port = address_of(taken->get())->port;
  settings.socket_ports = std::to_string(port);
  const Result<Descriptor> none = listen_at(*where, settings);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("FCCL_SOCKET_PORTS=" + std::to_string(port)), std::string::npos) << none.error().message;
  settings.socket_ports = fmt::format("{}-{}", port, std::min(port + 50, 65535));
  if (port == 65535) return;
  const Result<Descriptor> next = listen_at(*where, settings);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_GT(address_of(next->get())->port, port);
}

}  // namespace
}  // namespace fccl::core
