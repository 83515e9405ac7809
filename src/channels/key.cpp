// Randomness and hashes by libsodium.
#include "channels/key.h"

#include <sodium.h>

#include "base/check.h"

namespace fccl::core {
namespace {

// libsodium starts when the library is loaded: it holds a lock while it starts, and a fork at that time would leave the lock
// taken for ever.
const bool kReady = sodium_init() >= 0;

void need_sodium() { check(kReady, "libsodium starts"); }

const unsigned char* data_of(std::string_view bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }

}  // namespace

void fill_random(std::span<unsigned char> bytes) {
  need_sodium();
  randombytes_buf(bytes.data(), bytes.size());
}

Digest digest(const Key& key, std::string_view label, std::initializer_list<std::string_view> parts) {
  need_sodium();
  const auto label_size = static_cast<unsigned char>(label.size());
  crypto_generichash_state state;
  crypto_generichash_init(&state, key.data(), key.size(), sizeof(Digest));
  crypto_generichash_update(&state, &label_size, 1);
  crypto_generichash_update(&state, data_of(label), label.size());
  for (const std::string_view part : parts) crypto_generichash_update(&state, data_of(part), part.size());
  Digest result;
  crypto_generichash_final(&state, result.data(), result.size());
  return result;
}

bool equal(const Digest& expected, std::string_view claimed) {
  return claimed.size() == expected.size() && sodium_memcmp(expected.data(), claimed.data(), expected.size()) == 0;
}

}  // namespace fccl::core
