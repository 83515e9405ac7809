// Prints docs/reference/environment.md, made from the table of settings.
#include <cstdio>

#include "settings/settings_document.h"

int main() { return std::fputs(fccl::core::settings_document().c_str(), stdout) < 0 ? 1 : 0; }
