// Each attack opens connections to a door, and says too little, too much, the wrong words or the right ones too late.
#include "processes/strangers.h"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <list>
#include <sstream>
#include <thread>

#include "bootstrap/messages.h"
#include "channels/channel.h"
#include "sockets/socket.h"

namespace fccl::core::testing {
namespace {

using namespace std::chrono_literals;
using Crowd = std::list<Descriptor>;

constexpr int kRank = 1;
constexpr size_t kCrowd = 300;
constexpr size_t kThousands = 5000;

Descriptor connect(const Door& door) {
  return door.local_name.empty() ? std::move(connect_tcp(door.id.root, Deadline::after(200ms)).socket)
                                 : std::move(connect_local(door.local_name, 1ms).socket);
}

// A connection that has said `words`, or as much of them as the kernel takes.
Descriptor connect_and_say(const Door& door, std::string_view words) {
  Descriptor socket = connect(door);
  if (socket && !words.empty()) write_some(socket.get(), words);
  return socket;
}

// Adds to a crowd until it has that size or finds the door full.
void gather(Crowd& crowd, const Door& door, size_t size, std::string_view words) {
  while (crowd.size() < size) {
    crowd.push_back(connect_and_say(door, words));
    if (crowd.back()) continue;
    crowd.pop_back();
    return;
  }
}

Crowd crowd_of(const Door& door, size_t size, std::string_view words) {
  Crowd crowd;
  gather(crowd, door, size, words);
  return crowd;
}

// A stranger who was turned out comes again, so that the crowd stays.
void stay(const Door& door, size_t size, std::string_view words, const GoesOn& goes_on) {
  Crowd crowd = crowd_of(door, size, words);
  while (goes_on()) {
    gather(crowd, door, size, words);
    std::array<char, 512> heard;
    for (Descriptor& one : crowd) {
      const bool gone = !one || [&] {
        const Transfer got = read_some(one.get(), heard);
        return got.closed || (got.error != 0 && got.error != EAGAIN);
      }();
      if (gone) one = connect_and_say(door, words);
    }
    std::this_thread::sleep_for(1ms);
  }
}

std::string preamble(const Key& key = {}) {
  const Conversation conversation(Role::connects, key, {kRank});
  return std::string(conversation.outgoing());
}

void say_nothing(const Door& door, const GoesOn& goes_on) { stay(door, kCrowd, {}, goes_on); }

void say_half(const Door& door, const GoesOn& goes_on) {
  const std::string half = preamble().substr(0, 40);
  stay(door, kCrowd, half, goes_on);
}

void say_all_but_the_proof(const Door& door, const GoesOn& goes_on) {
  const std::string whole = preamble();
  stay(door, kCrowd, whole, goes_on);
}

void say_a_byte_now_and_then(const Door& door, const GoesOn& goes_on) {
  const std::string words = preamble() + std::string(sizeof(Digest), '\0');
  Crowd crowd = crowd_of(door, 200, {});
  for (size_t at = 0; goes_on(); at = (at + 1) % words.size()) {
    for (Descriptor& one : crowd)
      if (!one || write_some(one.get(), words.substr(at, 1)).error != 0) one = connect(door);
    std::this_thread::sleep_for(1ms);
  }
}

void say_again_and_again(const Door& door, const GoesOn& goes_on, const std::string& words) {
  do
    for (int i = 0; i < 16; ++i) connect_and_say(door, words);
  while (goes_on());
}

void say_garbage(const Door& door, const GoesOn& goes_on) { say_again_and_again(door, goes_on, std::string(1 << 16, '\xa5')); }

void ask_for_a_page(const Door& door, const GoesOn& goes_on) {
  say_again_and_again(door, goes_on, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

void scan(const Door& door, const GoesOn& goes_on) { say_again_and_again(door, goes_on, {}); }

void come_in_thousands_and_stay(const Door& door, const GoesOn& goes_on) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  Crowd crowd;
  do gather(crowd, door, std::min<size_t>(kThousands, limit.rlim_max - 64), {});
  while (goes_on());
}

// Never fewer than the root keeps are at the door, and all have begun well.
void come_faster_than_one_is_served(const Door& door, const GoesOn& goes_on) {
  const std::string words = preamble();
  Crowd crowd = crowd_of(door, kCrowd, words);
  do
    for (int i = 0; i < 16; ++i) {
      crowd.push_back(connect_and_say(door, words));
      if (crowd.size() > kCrowd) crowd.pop_front();
    }
  while (goes_on());
}

void try_a_wrong_key(const Door& door, const GoesOn& goes_on) {
  Key wrong = door.id.key;
  wrong[0] ^= 1;
  do {
    Descriptor socket = connect(door);
    if (!socket) continue;
    Channel channel(std::move(socket), Conversation(Role::connects, wrong, {kRank}));
    (void)channel.await_open(Deadline::after(5ms));
  } while (goes_on());
}

// Repeats the words of an honest rank with the key from another conversation.
void replay(const Door& door, const GoesOn& goes_on) {
  Conversation honest(Role::connects, door.id.key, {kRank});
  Conversation root(Role::listens, door.id.key, {kRootRank});
  std::string recorded;
  for (int i = 0; i < 2; ++i) {
    const std::string said(honest.outgoing());
    honest.sent(said.size());
    (void)root.take(said);
    recorded += said;
    (void)honest.take(root.outgoing());
    root.sent(root.outgoing().size());
  }
  honest.say(encode(Hello{{kRank, 1, 0, "host", "name"}, 4, "agreement"}));
  recorded += honest.outgoing();
  say_again_and_again(door, goes_on, recorded);
}

void claim_another_protocol(const Door& door, const GoesOn& goes_on) {
  const Conversation other(Role::connects, Key{}, {kRank, {77, 1}});
  stay(door, kCrowd, other.outgoing(), goes_on);
}

}  // namespace

const std::vector<Attack>& every_attack() {
  static const std::vector<Attack> attacks{{"silence", say_nothing},
                                           {"half_a_preamble", say_half},
                                           {"no_proof", say_all_but_the_proof},
                                           {"slow_bytes", say_a_byte_now_and_then},
                                           {"garbage", say_garbage},
                                           {"http", ask_for_a_page},
                                           {"port_scan", scan},
                                           {"thousands_that_stay", come_in_thousands_and_stay},
                                           {"thousands_in_a_row", come_faster_than_one_is_served},
                                           {"wrong_key", try_a_wrong_key},
                                           {"replay", replay},
                                           {"another_protocol", claim_another_protocol}};
  return attacks;
}

std::string local_listener_of(int pid) {
  std::vector<std::string> sockets;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry, gone);
    if (target.starts_with("socket:[")) sockets.push_back(target.substr(8, target.size() - 9));
  }
  std::ifstream table("/proc/net/unix");
  constexpr std::string_view kListens = "00010000";
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string number, references, protocol, flags, type, state, inode, name;
    words >> number >> references >> protocol >> flags >> type >> state >> inode >> name;
    if (flags == kListens && name.starts_with('@') && std::find(sockets.begin(), sockets.end(), inode) != sockets.end())
      return name.substr(1);
  }
  return {};
}

}  // namespace fccl::core::testing
