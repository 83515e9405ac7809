// Tests that a library's folder stays the same when the current directory changes.
#include "os/code_folder.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace fccl::core {
namespace {

namespace fs = std::filesystem;

TEST(CodeFolder, of_a_program_is_that_of_its_file) {
  EXPECT_EQ(folder_of_code(reinterpret_cast<const void*>(&folder_of_code)), fs::read_symlink("/proc/self/exe").parent_path());
}

TEST(CodeFolder, of_a_library_that_was_loaded_by_a_relative_path_is_absolute_after_a_change_of_directory) {
  const fs::path library = FCCL_LIBRARY_OF_ANOTHER_KIND, before = fs::current_path();
  fs::current_path(library.parent_path());
  void* const loaded = ::dlopen(("./" + library.filename().string()).c_str(), RTLD_NOW | RTLD_LOCAL);
  fs::current_path("/");
  ASSERT_NE(loaded, nullptr) << ::dlerror();
  EXPECT_EQ(folder_of_code(::dlsym(loaded, "fi_absent")), fs::canonical(library).parent_path());
  fs::current_path(before);
  ::dlclose(loaded);
}

TEST(CodeFolder, of_a_library_that_was_loaded_through_a_link_is_that_of_the_link) {
  const fs::path folder = fs::temp_directory_path() / ("fccl-code-folder-" + std::to_string(::getpid()));
  fs::create_directory(folder);
  const fs::path link = folder / "libfccl_linked.so";
  fs::create_symlink(FCCL_LIBRARY_OF_ANOTHER_KIND, link);
  void* const loaded = ::dlopen(link.c_str(), RTLD_NOW | RTLD_LOCAL);
  fs::remove_all(folder);
  ASSERT_NE(loaded, nullptr) << ::dlerror();
  EXPECT_EQ(folder_of_code(::dlsym(loaded, "fi_absent")), folder);
  ::dlclose(loaded);
}

TEST(CodeFolder, of_what_no_file_holds_is_empty) {
  const int here = 0;
  EXPECT_EQ(folder_of_code(&here), "");
}

}  // namespace
}  // namespace fccl::core
