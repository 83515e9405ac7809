// How the messages are laid out, and what is refused when they are read.
#include "host_link/link_messages.h"

#include <algorithm>
#include <utility>

#include "channels/bytes.h"
#include "channels/handshake.h"

namespace fccl::core {
namespace {

constexpr size_t kKind = 1;
constexpr size_t kCount = 4;

std::string_view bounded(const std::string& text) { return std::string_view(text).substr(0, kLinkTextLimit); }

void write(Writer& writer, const Blobs& blobs) {
  writer.number(static_cast<uint32_t>(blobs.of_hosts.size()));
  for (const std::string& bytes : blobs.of_hosts) {
    writer.number(static_cast<uint32_t>(bytes.size()));
    writer.raw(bytes);
  }
}
void write(Writer& writer, const Awaiting& awaiting) { writer.text(bounded(awaiting.whom)); }
void write(Writer& writer, const Failure& failure) {
  writer.number(failure.error.code.number());
  writer.text(bounded(failure.error.message));
}
void write(Writer& writer, const Departure& departure) {
  writer.number(int32_t{departure.rank});
  writer.number(static_cast<uint8_t>(departure.how));
  writer.number(departure.last_call);
}
void write(Writer& writer, const Cut& cut) {
  writer.number(int32_t{cut.host});
  writer.number(static_cast<uint8_t>(cut.how));
}
void write(Writer&, const Goodbye&) {}
void write(Writer& writer, const LongWait& wait) {
  writer.number(int32_t{wait.rank});
  writer.number(int32_t{wait.awaited});
}

// It trusts no count: bytes that end too early end it.
bool read(Reader& reader, Blobs& blobs) {
  const auto hosts = reader.number<uint32_t>();
  while (blobs.of_hosts.size() < hosts && reader.good()) {
    const auto bytes = reader.number<uint32_t>();
    if (bytes > kBlobLimit) return false;
    blobs.of_hosts.emplace_back(reader.raw(bytes));
  }
  return true;
}
bool read(Reader& reader, Awaiting& awaiting) {
  awaiting.whom = reader.text();
  return awaiting.whom.size() <= kLinkTextLimit;
}
bool read(Reader& reader, Failure& failure) {
  const auto code = MessageCode::of_peer(reader.number<uint16_t>());
  failure.error.code = code.value_or(fcclInternalError);
  failure.error.message = reader.text();
  return code && failure.error.message.size() <= kLinkTextLimit;
}
bool read(Reader& reader, Departure& departure) {
  departure.rank = reader.number<int32_t>();
  departure.how = static_cast<PeerStatus>(reader.number<uint8_t>());
  departure.last_call = reader.number<uint64_t>();
  return departure.rank >= 0 && (departure.how == PeerStatus::left || departure.how == PeerStatus::died);
}
bool read(Reader& reader, Cut& cut) {
  cut.host = reader.number<int32_t>();
  cut.how = static_cast<LinkEnd>(reader.number<uint8_t>());
  return cut.host >= 0 && (cut.how == LinkEnd::goodbye || cut.how == LinkEnd::broken);
}
bool read(Reader&, Goodbye&) { return true; }
bool read(Reader& reader, LongWait& wait) {
  wait.rank = reader.number<int32_t>();
  wait.awaited = reader.number<int32_t>();
  return wait.rank >= 0 && wait.awaited >= kNobody;
}

template <size_t index>
std::optional<LinkMessage> decode_as(Reader& reader) {
  std::variant_alternative_t<index, LinkMessage> message;
  if (!read(reader, message) || !reader.complete()) return std::nullopt;
  return LinkMessage(std::move(message));
}

template <size_t... indices>
std::optional<LinkMessage> decode_kind(size_t kind, Reader& reader, std::index_sequence<indices...>) {
  std::optional<LinkMessage> message;
  (void)((kind == indices && (message = decode_as<indices>(reader), true)) || ...);
  return message;
}

}  // namespace

size_t message_limit(int hosts) {
  const auto count = static_cast<size_t>(hosts);
  return std::max(kMessageLimit, kKind + kCount + kCount * count + std::min(kBlobLimit * count, kBlobsLimit));
}

std::string encode_link(const LinkMessage& message) {
  Writer writer;
  writer.number(static_cast<uint8_t>(message.index()));
  std::visit([&](const auto& value) { write(writer, value); }, message);
  return writer.bytes();
}

std::optional<LinkMessage> decode_link(std::string_view bytes) {
  Reader reader(bytes);
  const auto kind = reader.number<uint8_t>();
  return decode_kind(kind, reader, std::make_index_sequence<std::variant_size_v<LinkMessage>>());
}

}  // namespace fccl::core
