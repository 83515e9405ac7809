// A library that nobody asked for: whatever loads it ends at once and says so.
#include <unistd.h>

__attribute__((constructor)) static void be_found_out(void) {
  static const char said[] = "a library of the current directory was loaded\n";
  _exit(write(STDERR_FILENO, said, sizeof said - 1) > 0 ? 66 : 67);
}
