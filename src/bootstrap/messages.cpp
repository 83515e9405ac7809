// How messages are laid out, and what is refused when they are read.
#include "bootstrap/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "channels/bytes.h"
#include "channels/handshake.h"
#include "sockets/socket.h"

namespace fccl::core {
namespace {

constexpr size_t kErrorLimit = kMessageLimit - 16;
// The limit for a hello that carries a failure: it has a member, but no agreement.
constexpr size_t kFailureLimit = kAgreementLimit;
// The limit for the name of a rank: its host's name and some words.
constexpr size_t kNameLimit = kTextLimit + 64;

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

void write(Writer& writer, const Member& member) {
  writer.number(int32_t{member.pid});
  writer.text(member.host_name);
  writer.text(member.listener);
  writer.text(member.address);
}

void write(Writer& writer, const Error& error, size_t limit) {
  writer.number(error.code.number());
  writer.text(std::string_view(error.message).substr(0, limit));
}

Member read_member(Reader& reader) {
  Member member;
  member.pid = reader.number<int32_t>();
  member.host_name = reader.text();
  member.listener = reader.text();
  member.address = reader.text();
  return member;
}

void write(Writer& writer, const Hello& hello) {
  write(writer, hello.member);
  writer.number(int32_t{hello.nranks});
  writer.text(hello.agreement);
  writer.number(uint8_t{hello.failure.has_value()});
  if (hello.failure) write(writer, *hello.failure, kFailureLimit);
  writer.number(int32_t{hello.origin});
  writer.text(hello.host);
}

// What precedes a member in a roster. A member says the name of its host if it is the first there, or has another name for it.
enum MemberFlags : uint8_t { kServes = 1, kHasAddress = 2, kOnHostOfTheLast = 4, kNamesHost = 8, kEveryFlag = 15 };

// They precede a word in a batch. A hello may leave out the texts that the hello before it has, too.
enum WordFlags : uint8_t { kWordMask = 7, kAgrees = 8, kOnSameHost = 16 };

// Leaves out what equals `last`, the hello before it in the batch.
void write(Writer& writer, const Passed& passed, const Hello*& last) {
  const auto* hello = std::get_if<Hello>(&passed.word);
  const bool same =
      hello != nullptr && last != nullptr && hello->host == last->host && hello->member.host_name == last->member.host_name;
  writer.number(static_cast<uint8_t>(passed.word.index() | (passed.agrees ? kAgrees : 0) | (same ? kOnSameHost : 0)));
  writer.number(int32_t{passed.rank});
  std::visit(Overloaded{[&](const Hello& said) {
                          Hello shorter = said;
                          if (passed.agrees) shorter.agreement = {};
                          if (same) shorter.host = shorter.member.host_name = {};
                          write(writer, shorter);
                        },
                        [](const GivingUp&) {}, [&](const Failed& failed) { write(writer, failed.error, kErrorLimit); },
                        [&](const Gone& gone) { writer.text(std::string_view(gone.why).substr(0, kTextLimit)); },
                        [](const Present&) {}},
             passed.word);
  if (hello != nullptr) last = hello;
}

void write(Writer& writer, const Batch& batch) {
  const Hello* last = nullptr;
  writer.number(uint8_t{batch.collects.has_value()});
  if (batch.collects) {
    writer.text(batch.collects->address);
    writer.number(uint8_t{batch.collects->is_astray});
  }
  writer.number(static_cast<uint8_t>(batch.words.size()));
  for (const Passed& passed : batch.words) write(writer, passed, last);
}

void write(Writer& writer, const Roster& roster) {
  std::vector<std::string_view> names;  // by host
  int last = 0;
  writer.number(static_cast<uint32_t>(roster.members.size()));
  for (const Member& member : roster.members) {
    const auto host = static_cast<size_t>(member.host);
    const bool same = member.host == last, named = host >= names.size() || names[host] != member.host_name;
    if (host >= names.size()) names.push_back(member.host_name);
    writer.number(static_cast<uint8_t>((member.serves ? kServes : 0) | (member.address.empty() ? 0 : kHasAddress) |
                                       (same ? kOnHostOfTheLast : 0) | (named ? kNamesHost : 0)));
    if (!same) writer.small_number(host);
    writer.small_number(static_cast<uint32_t>(member.pid));
    writer.short_text(member.listener);
    if (named) writer.short_text(member.host_name);
    if (!member.address.empty()) writer.short_text(member.address);
    last = member.host;
  }
}

// Hosts must be numbered as their first ranks come; `names` has those of the hosts so far. Returns nothing for bytes that
// `write` does not make.
std::optional<Member> read_listed(Reader& reader, int last, std::vector<std::string>& names) {
  Member member;
  const auto flags = reader.number<uint8_t>();
  const bool same = (flags & kOnHostOfTheLast) != 0, named = (flags & kNamesHost) != 0;
  member.host = same ? last : reader.small_int();
  const auto host = static_cast<size_t>(member.host);
  if (flags > kEveryFlag || host > names.size() || (!same && member.host == last)) return std::nullopt;
  member.pid = reader.small_int();
  member.listener = reader.short_text();
  if (named) member.host_name = reader.short_text();
  if (host == names.size() ? !named : named && member.host_name == names[host]) return std::nullopt;
  if (host == names.size()) names.push_back(member.host_name);
  if (!named) member.host_name = names[host];
  if ((flags & kHasAddress) != 0) member.address = reader.short_text();
  if (member.address.empty() != ((flags & kHasAddress) == 0)) return std::nullopt;
  member.serves = (flags & kServes) != 0;
  return member;
}

// It trusts no count: bytes that end too early end it.
std::optional<Roster> read_roster(Reader& reader) {
  const auto count = reader.number<uint32_t>();
  Roster roster;
  std::vector<std::string> names;
  int last = 0;
  while (roster.members.size() < count && reader.good()) {
    auto member = read_listed(reader, last, names);
    if (!member) return std::nullopt;
    last = member->host;
    member->rank = static_cast<int>(roster.members.size());
    roster.members.push_back(std::move(*member));
  }
  return roster;
}

// An unknown code is read as fcclSuccess.
Error read_error(Reader& reader) {
  const auto code = MessageCode::of_peer(reader.number<uint16_t>());
  return {code.value_or(fcclSuccess), reader.text()};
}

Hello read_hello(Reader& reader) {
  Hello hello;
  hello.member = read_member(reader);
  hello.nranks = reader.number<int32_t>();
  hello.agreement = reader.text();
  if (reader.number<uint8_t>() != 0) hello.failure = read_error(reader);
  hello.origin = reader.number<int32_t>();
  hello.host = reader.text();
  return hello;
}

bool sensible(const Member& member) {
  return member.pid > 0 && member.host_name.size() <= kTextLimit && member.listener.size() <= kTextLimit &&
         member.address.size() <= kTextLimit && (member.address.empty() || address_from(member.address));
}

bool sensible(const Error& error) { return error.code != fcclSuccess; }

bool sensible(const Roster& roster) {
  return !roster.members.empty() && std::ranges::all_of(roster.members, [](const Member& member) { return sensible(member); });
}

bool sensible(const Hello& hello) {
  if (!sensible(hello.member) || hello.host.size() > kTextLimit || hello.origin < -1 ||
      hello.agreement.size() > kAgreementLimit)
    return false;
  return !hello.failure ||
         (sensible(*hello.failure) && hello.failure->message.size() <= kFailureLimit && hello.agreement.empty());
}
bool sensible(const GivingUp&) { return true; }
bool sensible(const Gone& gone) { return gone.why.size() <= kTextLimit; }
bool sensible(const Present&) { return true; }
bool sensible(const Progress& progress) { return progress.joined >= 0 && progress.missing.size() <= kTextLimit; }
bool sensible(const Refusal& refusal) { return sensible(refusal.error); }
bool sensible(const Failed& failed) { return sensible(failed.error); }
bool sensible(const Farewell&) { return true; }
bool sensible(const Later&) { return true; }
bool sensible(const SharedRoster& shared) { return shared.bytes > 0; }
bool sensible(const PlaceInTree& place) { return address_from(place.address) && place.whom.size() <= kNameLimit; }
bool sensible(const Query&) { return true; }
bool sensible(const LostWay& lost) { return lost.whom.size() <= kNameLimit && lost.why.size() <= kTextLimit; }
bool sensible(const Batch& batch) {
  if (batch.collects && !batch.collects->address.empty() && !address_from(batch.collects->address)) return false;
  return !batch.words.empty() && batch.words.size() <= kMostPassedOn &&
         std::ranges::all_of(batch.words, [](const Passed& passed) {
           return std::visit([](const auto& word) { return sensible(word); }, passed.word);
         });
}

// Returns nothing for bytes that `write` does not make; `last` is the hello before it in the batch.
std::optional<Passed> read_passed(Reader& reader, const Hello* last) {
  const auto flags = reader.number<uint8_t>();
  const bool is_hello = (flags & kWordMask) == 0, same = (flags & kOnSameHost) != 0;
  if (flags >= 2 * kOnSameHost || (!is_hello && flags > kWordMask) || (same && last == nullptr)) return std::nullopt;
  Passed passed{.rank = reader.number<int32_t>(), .word = {}, .agrees = (flags & kAgrees) != 0};
  switch (flags & kWordMask) {
    case 0: {
      Hello hello = read_hello(reader);
      const bool left_out = hello.host.empty() && hello.member.host_name.empty();
      if ((passed.agrees && !hello.agreement.empty()) || (same && !left_out)) return std::nullopt;
      if (same) std::tie(hello.host, hello.member.host_name) = std::tie(last->host, last->member.host_name);
      passed.word = std::move(hello);
      return passed;
    }
    case 1:
      passed.word = GivingUp{};
      return passed;
    case 2:
      passed.word = Failed{read_error(reader)};
      return passed;
    case 3:
      passed.word = Gone{reader.text()};
      return passed;
    case 4:
      passed.word = Present{};
      return passed;
    default:
      return std::nullopt;
  }
}

std::optional<Batch> read_batch(Reader& reader) {
  Batch batch;
  if (reader.number<uint8_t>() != 0) {
    batch.collects.emplace(reader.text());
    batch.collects->is_astray = reader.number<uint8_t>() != 0;
  }
  batch.words.resize(reader.number<uint8_t>());
  const Hello* last = nullptr;
  for (Passed& each : batch.words) {
    auto passed = read_passed(reader, last);
    if (!passed || !reader.good()) return std::nullopt;
    each = std::move(*passed);
    if (const auto* hello = std::get_if<Hello>(&each.word)) last = hello;
  }
  return batch;
}

std::optional<Message> read(Reader& reader, uint8_t kind) {
  switch (kind) {
    case 0:
      return read_hello(reader);
    case 1:
      return GivingUp{};
    case 2: {
      Progress progress;
      progress.joined = reader.number<int32_t>();
      progress.missing = reader.text();
      return progress;
    }
    case 3:
      return Refusal{read_error(reader)};
    case 5:
      return Failed{read_error(reader)};
    case 6:
      return Farewell{};
    case 7:
      return Later{};
    case 8:
      return SharedRoster{reader.number<uint32_t>()};
    case 9: {
      PlaceInTree place{reader.text()};
      place.rank = reader.number<int32_t>();
      place.whom = reader.text();
      return place;
    }
    case 10:
      return Query{};
    case 11:
      return read_batch(reader);
    case 12: {
      LostWay lost{reader.text()};
      lost.why = reader.text();
      return lost;
    }
    default:
      return read_roster(reader);
  }
}

}  // namespace

Roster roster_of(const std::map<int, Hello>& hellos) {
  Roster roster;
  std::map<std::string_view, int> numbers;
  for (const auto& [rank, hello] : hellos) {
    const auto [host, is_leader] = numbers.try_emplace(hello.host, static_cast<int>(numbers.size()));
    roster.members.push_back(hello.member);
    roster.members.back().host = host->second;
    if (!is_leader) roster.members.back().address.clear();
  }
  for (Member& member : roster.members)
    if (!leads_others(member.host, static_cast<int>(numbers.size()))) member.address.clear();
  return roster;
}

size_t roster_limit(int nranks) {
  constexpr size_t kHead = 1 + 4;
  constexpr size_t kHostNumber = 3, kPid = 5, kTexts = 3 * (1 + kTextLimit);
  constexpr size_t kMost = 1 + kHostNumber + kPid + kTexts;
  return kHead + std::clamp(nranks, 0, kRankLimit) * kMost;
}

std::string encode(const Message& message) {
  Writer writer;
  writer.number(static_cast<uint8_t>(message.index()));
  std::visit(Overloaded{[&](const Hello& hello) { write(writer, hello); }, [](const GivingUp&) {},
                        [&](const Progress& progress) {
                          writer.number(int32_t{progress.joined});
                          writer.text(progress.missing);
                        },
                        [&](const Refusal& refusal) { write(writer, refusal.error, kErrorLimit); },
                        [&](const Roster& roster) { write(writer, roster); },
                        [&](const Failed& failed) { write(writer, failed.error, kErrorLimit); }, [](const Farewell&) {},
                        [](const Later&) {}, [&](const SharedRoster& shared) { writer.number(shared.bytes); },
                        [&](const PlaceInTree& place) {
                          writer.text(place.address);
                          writer.number(int32_t{place.rank});
                          writer.text(place.whom);
                        },
                        [](const Query&) {}, [&](const Batch& batch) { write(writer, batch); },
                        [&](const LostWay& lost) {
                          writer.text(std::string_view(lost.whom).substr(0, kNameLimit));
                          writer.text(std::string_view(lost.why).substr(0, kTextLimit));
                        }},
             message);
  return writer.bytes();
}

std::optional<Message> decode(std::string_view bytes) {
  Reader reader(bytes);
  const auto kind = reader.number<uint8_t>();
  if (kind >= std::variant_size_v<Message>) return std::nullopt;
  std::optional<Message> message = read(reader, kind);
  if (!message || !reader.complete() || !std::visit([](const auto& value) { return sensible(value); }, *message))
    return std::nullopt;
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

}  // namespace fccl::core
