// Messages: what ranks and the root of a bootstrap say to each other, as values and as bytes.
#include "communicator/messages.h"

#include <fmt/format.h>

#include "communicator/bytes.h"
#include "communicator/handshake.h"
#include "system/socket.h"

namespace fccl {
namespace {

constexpr size_t kRefusalLimit = kMessageLimit - 16;

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

void write(Writer& writer, const Member& member) {
  writer.number(int32_t{member.pid});
  writer.text(member.host);
  writer.text(member.host_name);
  writer.text(member.listener);
  writer.text(member.address);
}

Member read_member(Reader& reader) {
  Member member;
  member.pid = reader.number<int32_t>();
  member.host = reader.text();
  member.host_name = reader.text();
  member.listener = reader.text();
  member.address = reader.text();
  return member;
}

bool sensible(const Member& member) {
  return member.pid > 0 && member.host.size() <= kTextLimit && member.host_name.size() <= kTextLimit &&
         member.listener.size() <= kTextLimit && (member.address.empty() || address_from(member.address));
}

bool sensible(const Hello& hello) { return sensible(hello.member) && hello.agreement.size() <= kAgreementLimit; }
bool sensible(const GivingUp&) { return true; }
bool sensible(const Progress& progress) { return progress.joined >= 0 && progress.missing.size() <= kTextLimit; }
bool sensible(const Refusal& refusal) { return refusal.error.code != fcclSuccess; }

Message read(Reader& reader, uint8_t kind) {
  switch (kind) {
    case 0: {
      Hello hello;
      hello.member = read_member(reader);
      hello.nranks = reader.number<int32_t>();
      hello.agreement = reader.text();
      return hello;
    }
    case 1:
      return GivingUp{};
    case 2: {
      Progress progress;
      progress.joined = reader.number<int32_t>();
      progress.missing = reader.text();
      return progress;
    }
    case 3: {
      Refusal refusal;
      const auto code = reader.number<uint8_t>();
      refusal.error.code = code < fcclNumResults ? static_cast<fcclResult_t>(code) : fcclSuccess;
      refusal.error.message = reader.text();
      return refusal;
    }
    default: {
      const int rank = reader.number<int32_t>();
      Member member = read_member(reader);
      member.rank = rank;
      return member;
    }
  }
}

}  // namespace

std::string encode(const Message& message) {
  Writer writer;
  writer.number(static_cast<uint8_t>(message.index()));
  std::visit(Overloaded{[&](const Hello& hello) {
                          write(writer, hello.member);
                          writer.number(int32_t{hello.nranks});
                          writer.text(hello.agreement);
                        },
                        [](const GivingUp&) {},
                        [&](const Progress& progress) {
                          writer.number(int32_t{progress.joined});
                          writer.text(progress.missing);
                        },
                        [&](const Refusal& refusal) {
                          writer.number(static_cast<uint8_t>(refusal.error.code));
                          writer.text(std::string_view(refusal.error.message).substr(0, kRefusalLimit));
                        },
                        [&](const Member& member) {
                          writer.number(int32_t{member.rank});
                          write(writer, member);
                        }},
             message);
  return writer.bytes();
}

std::optional<Message> decode(std::string_view bytes) {
  Reader reader(bytes);
  const auto kind = reader.number<uint8_t>();
  if (kind >= std::variant_size_v<Message>) return std::nullopt;
  Message message = read(reader, kind);
  if (!reader.complete() || !std::visit([](const auto& value) { return sensible(value); }, message)) return std::nullopt;
  return message;
}

std::string list_ranks(const std::vector<int>& ascending) {
  constexpr int kMostRanges = 8;
  std::string text;
  size_t i = 0;
  for (int ranges = 0; i < ascending.size() && ranges < kMostRanges; ++ranges) {
    size_t last = i;
    while (last + 1 < ascending.size() && ascending[last + 1] == ascending[last] + 1) ++last;
    text += i == 0 ? "" : ", ";
    text += last == i ? fmt::format("{}", ascending[i]) : fmt::format("{}-{}", ascending[i], ascending[last]);
    i = last + 1;
  }
  if (i < ascending.size()) text += fmt::format(" and {} more", ascending.size() - i);
  return (ascending.size() == 1 ? "rank " : "ranks ") + text;
}

}  // namespace fccl
