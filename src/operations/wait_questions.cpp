// Posts questions and answers as asides of the lane of transfers, and reads those of peers.
#include "operations/wait_questions.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/signature.h"
#include "health/control.h"
#include "host_link/link_messages.h"
#include "kernels/copy.h"
#include "wire/endpoint.h"
#include "wire/lane.h"
#include "wire/link.h"

namespace fccl::core {
namespace {

using std::chrono::milliseconds;

// A rank with thousands of waits asks no more often than this.
constexpr milliseconds kBetweenQuestions{2};
// A rank that has asked within this time still waits, or has failed.
constexpr milliseconds kAskedLately{2000};
// The longest wait that a question tells.
constexpr uint64_t kLongestWait = 3'600'000;

// The plain bytes of an aside; the text of a failure follows them.
struct Message {
  enum Kind : uint8_t { kQuestion = 1, kAnswer = 2, kFailure = 3 };

  Kind kind = kQuestion;
  uint8_t lane = 0;      // a question's
  uint8_t state = 0;     // an answer's LineState
  uint8_t has_call = 0;  // 1: an answer tells a call
  int32_t last = -1;     // the rank at the end of the line that an answer tells
  uint64_t number = 0;   // a question's milliseconds waited, the number of an answer's call, or a failure's code
  SignatureWords signature;
};
static_assert(sizeof(Message) == 40 && std::is_trivially_copyable_v<Message>);

std::span<const std::byte> bytes_of(const Message& message) { return std::as_bytes(std::span(&message, 1)); }

// Returns nothing for an answer that no rank gives.
std::optional<WaitAnswer> answer_of(const Message& message, std::span<const std::byte> text) {
  WaitAnswer answer{.end = {message.last, static_cast<LineState>(message.state)}, .call = {}, .failure = {}};
  if (message.kind == Message::kFailure) {
    const auto code = MessageCode::of_peer(message.number);
    if (!code) return std::nullopt;
    answer.failure = {*code, std::string(reinterpret_cast<const char*>(text.data()), std::min(text.size(), kLinkTextLimit))};
    return answer;
  }
  if (message.kind != Message::kAnswer || message.state > static_cast<uint8_t>(LineState::circle)) return std::nullopt;
  if (message.has_call != 0 && !name_a_call(message.signature)) return std::nullopt;
  if (message.has_call != 0) answer.call = CallInFull{message.number, signature_of(message.signature)};
  return answer;
}

}  // namespace

WaitQuestions::WaitQuestions(Endpoint& endpoint, WireLane& lane, Control& control)
    : endpoint_(endpoint),
      lane_(lane),
      control_(control),
      places_(static_cast<size_t>(PortShape::kQuestions + lane.port().shape().answers())) {
  endpoint_.in_turn([this] { lane_.port().asides = this; });
}

bool WaitQuestions::ask(int rank, const WaitQuestion& question) {
  const uint64_t waited = static_cast<uint64_t>(std::chrono::duration_cast<milliseconds>(question.waited).count());
  const Message message{.lane = static_cast<uint8_t>(question.lane), .number = waited, .signature = {}};
  bool is_asked = false;
  endpoint_.in_turn([&] {
    const Clock::time_point now = Clock::now();
    if (now < next_question_) return;
    next_question_ = now + kBetweenQuestions;
    // A question that the network still holds is not asked twice.
    is_asked = is_being_asked(rank) || post(rank, find_place(0, PortShape::kQuestions), bytes_of(message), {});
  });
  return is_asked;
}

void WaitQuestions::tell(const Error& failure) {
  endpoint_.in_turn([&] {
    const Clock::time_point oldest = Clock::now() - kAskedLately;
    for (Asker& asker : askers_)
      if (asker.asked >= oldest && answer(asker.rank, {.end = {}, .call = {}, .failure = failure})) asker.asked = {};
  });
}

// The lane's members are all ranks.
void WaitQuestions::hear(int peer, std::span<const std::byte> content) {
  const int rank = lane_.port().shape().ranks[static_cast<size_t>(peer)];
  Message message;
  if (content.size() < sizeof(message)) return;
  std::memcpy(&message, content.data(), sizeof(message));
  if (message.kind != Message::kQuestion) {
    if (const auto answer = answer_of(message, content.subspan(sizeof(message)))) control_.judge.hear(rank, *answer);
  } else if (message.lane <= kLanes) {
    hear_question(rank, {static_cast<LaneId>(message.lane), milliseconds(std::min(message.number, kLongestWait))});
  }
}

void WaitQuestions::hear_question(int rank, const WaitQuestion& question) {
  const auto known = std::ranges::find(askers_, rank, &Asker::rank);
  Asker& asker = known == askers_.end() ? askers_[next_asker_++ % askers_.size()] : *known;
  asker = {rank, Clock::now()};
  (void)answer(rank, control_.judge.answer(question));
}

bool WaitQuestions::answer(int rank, const WaitAnswer& answer) {
  Message message{
      .kind = Message::kAnswer, .state = static_cast<uint8_t>(answer.end.state), .last = answer.end.rank, .signature = {}};
  if (answer.call) {
    message.has_call = 1;
    message.number = answer.call->number;
    message.signature = words_of(answer.call->signature);
  }
  std::string_view text;
  if (answer.failure) {
    message.kind = Message::kFailure;
    message.number = answer.failure->code.number();
    text = std::string_view(answer.failure->message).substr(0, lane_.payload_bytes() - sizeof(message));
  }
  const int place = find_place(PortShape::kQuestions, static_cast<int>(places_.size()));
  return post(rank, place, bytes_of(message), std::as_bytes(std::span(text)));
}

bool WaitQuestions::is_free(int place) const {
  const Port& port = lane_.port();
  const int end = port.end_of_notice(port.shape().notices_out + place);
  return Awaited{&port.ends[static_cast<size_t>(end)].value, places_[static_cast<size_t>(place)].posted, -1}.reached();
}

bool WaitQuestions::is_being_asked(int rank) const {
  for (int place = 0; place < PortShape::kQuestions; ++place)
    if (places_[static_cast<size_t>(place)].rank == rank && !is_free(place)) return true;
  return false;
}

// Returns a free place, or one below zero. Questions to ranks that cannot be reached take no place of an answer.
int WaitQuestions::find_place(int first, int behind) const {
  for (int place = first; place < behind; ++place)
    if (is_free(place)) return place;
  return -1;
}

// Posts an aside unless no place is free, or the rail has no room.
bool WaitQuestions::post(int rank, int place, std::span<const std::byte> head, std::span<const std::byte> text) {
  if (place < 0) return false;
  Port& port = lane_.port();
  const int notice = port.shape().notices_out + place;
  const WireLink& link = lane_.link(rank);
  EntryMessage entry;
  entry.channel = link.channel;
  entry.kind = EntryMessage::kAside;
  entry.token = link.token;
  std::byte* const message = port.memory.notice(notice);
  copy_bytes(message, &entry, sizeof(entry));
  copy_bytes(message + sizeof(entry), head.data(), head.size());
  copy_bytes(message + sizeof(entry) + head.size(), text.data(), text.size());
  const Operation operation{.kind = Operation::Kind::message,
                            .peer = link.rail[0].peer,
                            .memory = port.memory.outgoing_id(),
                            .local = message,
                            .bytes = sizeof(entry) + head.size() + text.size(),
                            .remote = {},
                            .tag = Port::note(lane_.place(rank), port.end_of_notice(notice))};
  if (!endpoint_.post_at_once(port, operation)) return false;
  places_[static_cast<size_t>(place)].rank = rank;
  ++places_[static_cast<size_t>(place)].posted;
  return true;
}

}  // namespace fccl::core
