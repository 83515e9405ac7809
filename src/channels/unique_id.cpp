// How an id is laid out in its bytes, and sealed against damage.
#include "channels/unique_id.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/check.h"
#include "channels/bytes.h"
#include "channels/handshake.h"

namespace fccl::core {
namespace {

// The last byte is the version of this format.
constexpr std::string_view kMagicOfIds{"fccl-id\x02", 8};
constexpr size_t kDigestBegin = FCCL_UNIQUE_ID_BYTES - sizeof(Digest);

// Guards against damage, not against forgery: the key stands in the same bytes.
Digest seal(std::string_view content) { return digest(Key{}, "fccl unique id", {content}); }

}  // namespace

std::string root_text(const UniqueId& id) {
  if (id.interface_name.empty()) return to_text(id.root);
  return fmt::format("{} ({})", to_text(id.root), describe(id.interface_name, id.chosen_by));
}

std::string door_name(const UniqueId& id, const std::string& host) {
  const std::string port = fmt::format("{:05}", id.root.port);
  const std::string version = fmt::format("{:08} {:08}", kOwnVersion.protocol, kOwnVersion.library);
  const Digest name = digest(id.key, "door of a host", {view(id.root.bytes), port, version, host});
  std::string text = "fccl-";
  for (const unsigned char byte : std::span(name).first(16)) text += fmt::format("{:02x}", byte);
  return text;
}

fcclUniqueId to_c(const UniqueId& id) {
  Writer writer;
  writer.raw(kMagicOfIds);
  writer.number(static_cast<uint8_t>(id.root.v6 ? 6 : 4));
  writer.number(id.root.port);
  writer.raw(view(id.root.bytes));
  writer.number(id.generation);
  writer.raw(view(id.key));
  writer.number(static_cast<uint8_t>(id.chosen_by));
  writer.number(static_cast<uint8_t>(id.interface_name.size()));
  writer.raw(id.interface_name);
  std::string content = writer.bytes();
  check(content.size() <= kDigestBegin, "a unique id has room for all that it says");
  content.resize(kDigestBegin);
  content += view(seal(content));
  fcclUniqueId bytes;
  std::memcpy(bytes.internal, content.data(), sizeof(bytes.internal));
  return bytes;
}

Result<UniqueId> from_c(const fcclUniqueId& bytes) {
  const std::string_view all(bytes.internal, sizeof(bytes.internal));
  if (std::ranges::all_of(all, [](char c) { return c == 0; }))
    return fail(fcclInvalidArgument, "the unique id is all zeros: was the id of fcclGetUniqueId handed to this rank?");
  Reader reader(all.substr(0, kDigestBegin));
  if (reader.raw(kMagicOfIds.size()) != kMagicOfIds)
    return fail(fcclInvalidArgument,
                "the unique id was not made by fcclGetUniqueId of this version of FCCL: all 128 bytes must "
                "reach every rank unchanged");
  if (!equal(seal(all.substr(0, kDigestBegin)), all.substr(kDigestBegin)))
    return fail(fcclInvalidArgument,
                "the unique id is damaged or cut off: all 128 bytes must reach every rank unchanged, zeros "
                "among them included");
  UniqueId id;
  id.root.v6 = reader.number<uint8_t>() == 6;
  id.root.port = reader.number<uint16_t>();
  std::ranges::copy(reader.raw(id.root.bytes.size()), id.root.bytes.begin());
  id.generation = reader.number<uint64_t>();
  std::ranges::copy(reader.raw(id.key.size()), id.key.begin());
  id.chosen_by = static_cast<ChosenBy>(std::min(reader.number<uint8_t>(), static_cast<uint8_t>(ChosenBy::order)));
  id.interface_name = reader.raw(reader.number<uint8_t>());
  if (std::memcmp(to_c(id).internal, bytes.internal, sizeof(bytes.internal)) != 0)
    return fail(fcclInvalidArgument, "the unique id says something that fcclGetUniqueId of this version of FCCL never says");
  return id;
}

}  // namespace fccl::core
