// Tests of the host identity.
#include "system/host_identity.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace fccl {
namespace {

TEST(HostIdentity, is_the_same_each_time_and_names_the_host) {
  EXPECT_EQ(host_identity(""), host_identity(""));
  EXPECT_NE(host_identity("").find(host_name()), std::string::npos);
  EXPECT_NE(host_identity("").find("ipc:["), std::string::npos);
  EXPECT_NE(host_identity("").find("pid:["), std::string::npos);
}

TEST(HostIdentity, an_override_stands_for_all_of_it) {
  EXPECT_EQ(host_identity("left"), host_identity("left"));
  EXPECT_NE(host_identity("left"), host_identity("right"));
  EXPECT_EQ(host_identity("left").find(host_name()), std::string::npos);
}

TEST(HostIdentity, a_process_in_another_ipc_namespace_is_on_another_host) {
  const std::string outside = host_identity("");
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWIPC) != 0) ::_exit(2);
    ::_exit(host_identity("") == outside ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this process may not make an IPC namespace (needs CAP_SYS_ADMIN)";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace fccl
