// Prints docs/environment.md as the table of settings has it.
#include <cstdio>

#include "system/settings_document.h"

int main() { return std::fputs(fccl::settings_document().c_str(), stdout) < 0 ? 1 : 0; }
