// Fuzzes the 128 bytes of a unique id: any bytes, and any content under a seal that fits.
#include <algorithm>
#include <cstring>

#include "channels/bytes.h"
#include "channels/unique_id.h"
#include "fuzz/fuzz.h"

namespace fccl::core::fuzz {
namespace {

fcclUniqueId bytes_of(std::string_view text) {
  fcclUniqueId id{};
  std::memcpy(id.internal, text.data(), std::min(text.size(), sizeof(id.internal)));
  return id;
}

void reseal(fcclUniqueId& id) {
  const std::string_view content(id.internal, sizeof(id.internal) - sizeof(Digest));
  const Digest seal = digest(Key{}, "fccl unique id", {content});
  std::memcpy(id.internal + content.size(), seal.data(), seal.size());
}

}  // namespace

std::vector<std::string> seeds() {
  UniqueId id;
  id.root = {true, {0xfd, 1, 2, 3}, 54321};
  id.generation = 0x0123456789abcdef;
  id.key.fill(7);
  const fcclUniqueId v6 = to_c(id);
  id.root.v6 = false;
  const fcclUniqueId v4 = to_c(id);
  std::vector<std::string> all;
  for (const fcclUniqueId& bytes : {v4, v6})
    for (const char sealed : {'\0', '\1'}) all.push_back(sealed + std::string(bytes.internal, sizeof(bytes.internal)));
  return all;
}

}  // namespace fccl::core::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fccl::core;
  fuzz::Input input(data, size);
  const bool sealed = (input.byte() & 1) != 0;
  fcclUniqueId bytes = fuzz::bytes_of(input.rest());
  if (sealed) fuzz::reseal(bytes);
  const Result<UniqueId> id = from_c(bytes);
  if (!id) {
    check(!id.error().message.empty(), "a refusal says why");
    return 0;
  }
  check(std::memcmp(to_c(*id).internal, bytes.internal, sizeof(bytes.internal)) == 0, "an id has one form as bytes");
  return 0;
}
