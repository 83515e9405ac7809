// Tests of the host identity.
#include "discovery/host_identity.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>

namespace fccl::core {
namespace {

TEST(HostIdentity, is_the_same_each_time_and_names_the_host) {
  EXPECT_EQ(host_identity(""), host_identity(""));
  EXPECT_NE(host_identity("").find(host_name()), std::string::npos);
  EXPECT_NE(host_identity("").find("ipc:["), std::string::npos);
  EXPECT_NE(host_identity("").find("pid:["), std::string::npos);
}

TEST(HostIdentity, an_override_stands_for_the_name_and_the_ipc_namespace) {
  EXPECT_EQ(host_identity("left"), host_identity("left"));
  EXPECT_NE(host_identity("left"), host_identity("right"));
  EXPECT_EQ(host_identity("left").find(host_name()), std::string::npos);
  EXPECT_EQ(host_identity("left").find("ipc:["), std::string::npos);
}

// Returns true if host_identity(override_text) differs in a new namespace of this kind; nothing if this process may not make
// one.
std::optional<bool> differs_in_a_new(int kind, const std::string& override_text) {
  const std::string outside = host_identity(override_text);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(kind) != 0) ::_exit(2);
    ::_exit(host_identity(override_text) == outside ? 1 : 0);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) == 2) return std::nullopt;
  return WEXITSTATUS(status) == 0;
}

TEST(HostIdentity, a_process_in_another_ipc_namespace_is_on_another_host_unless_an_override_says_not) {
  const auto differs = differs_in_a_new(CLONE_NEWIPC, "");
  if (!differs) GTEST_SKIP() << "this process may not make an IPC namespace (needs CAP_SYS_ADMIN)";
  EXPECT_TRUE(*differs);
  EXPECT_EQ(differs_in_a_new(CLONE_NEWIPC, "left"), false);
}

// The process could not reach the others' abstract sockets. Ranks also watch each other by pid.
TEST(HostIdentity, a_process_in_another_network_namespace_is_on_another_host_whatever_an_override_says) {
  const auto differs = differs_in_a_new(CLONE_NEWNET, "left");
  if (!differs) GTEST_SKIP() << "this process may not make a network namespace (needs CAP_SYS_ADMIN)";
  EXPECT_TRUE(*differs);
  EXPECT_NE(host_identity("left").find("pid:["), std::string::npos);
}

}  // namespace
}  // namespace fccl::core
