// Leaks that are libfabric's: 1.17 keeps an fi_info per endpoint, and both it and 2.4 some bytes per connection or process.
extern "C" {

// The sanitizer's name for it.
__attribute__((visibility("default"))) const char* __lsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier)

const char* __lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "leak:libfabric.so\nleak:libtcp-fi.so\n";
}
}
