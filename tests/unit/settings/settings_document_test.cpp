// Tests that the page of settings equals the one made from the table.
#include "settings/settings_document.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace fccl::core {
namespace {

TEST(SettingsDocument, is_docs_environment_md) {
  std::ifstream file(FCCL_SOURCE_DIR "/docs/reference/environment.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(page, settings_document()) << "make it anew: build/tests/unit/print_settings > docs/reference/environment.md";
}

}  // namespace
}  // namespace fccl::core
