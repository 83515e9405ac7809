// Tests of the errors that a user gets if a transport's shared library cannot be loaded.
#include "wire/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace fccl::core {

namespace {

using testing::AllOf;
using testing::HasSubstr;

void of_application(int) {}

TEST(PluginTest, a_library_that_is_nowhere_is_named_with_where_it_was_looked_for) {
  const auto opened = open_transport_of("libfccl_nowhere.so", {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, fcclSystemError);
  EXPECT_THAT(opened.error().message,
              AllOf(HasSubstr("there is no libfccl_nowhere.so in /"), HasSubstr("the only place"), HasSubstr("install")));
}

// libc is where the loader looks, and loaded as well.
TEST(PluginTest, a_library_that_the_loader_would_find_elsewhere_is_not_looked_for) {
  const auto opened = open_transport_of("libc.so.6", {});
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("there is no libc.so.6 in /"));
}

TEST(PluginTest, a_file_that_is_no_library_is_named_with_why_it_cannot_be_loaded) {
  const auto opened = open_transport_of("/proc/self/status", {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, fcclSystemError);
  EXPECT_THAT(opened.error().message, AllOf(HasSubstr("/proc/self/status cannot be loaded ("), HasSubstr("install")));
}

TEST(PluginTest, a_missing_libfabric_is_told_with_how_to_install_it) {
  const auto opened = open_transport_of(FCCL_LIBRARY_WITHOUT_LIBFABRIC, {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, fcclSystemError);
  EXPECT_THAT(opened.error().message, AllOf(HasSubstr("libfabric is not installed"), HasSubstr("apt-get install libfabric1"),
                                            HasSubstr("dnf install libfabric"), HasSubstr("EFA installer")));
}

TEST(PluginTest, a_library_that_is_no_transport_is_refused) {
  const std::string library = FCCL_LIBRARY_OF_ANOTHER_KIND;
  const auto opened = open_transport_of(library, {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, fcclSystemError);
  EXPECT_THAT(opened.error().message, HasSubstr(library + " is not a transport of FCCL, as it has no fccl_open_transport"));
  const auto listed = list_nics_of(library, {});
  ASSERT_FALSE(listed);
  EXPECT_THAT(listed.error().message, HasSubstr(library + " is not a transport of FCCL, as it has no fccl_list_nics"));
}

TEST(PluginTest, what_a_library_does_to_signals_is_undone) {
  ::signal(SIGTERM, of_application);
  ::signal(SIGINT, of_application);
  const auto listed = list_nics_of(FCCL_LIBRARY_THAT_TAKES_SIGNALS, {});
  EXPECT_EQ(::signal(SIGTERM, SIG_DFL), of_application);
  EXPECT_EQ(::signal(SIGINT, SIG_DFL), of_application);
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().message, "it has no NICs");
}

}  // namespace

}  // namespace fccl::core
