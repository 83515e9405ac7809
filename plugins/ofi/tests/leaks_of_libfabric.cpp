// Leaks that are libfabric's: 1.17 keeps an fi_info per endpoint and some bytes per connection.

// NOLINTBEGIN(*-reserved-identifier,readability-identifier-naming): the sanitizer looks for this name.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions() { return "leak:libfabric.so\n"; }
// NOLINTEND(*-reserved-identifier,readability-identifier-naming)
