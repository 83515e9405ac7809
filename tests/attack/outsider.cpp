// outsider: attacks what listens in the places that it is told of, with libfabric and nothing else, and counts its attempts.
//
//   outsider PROVIDER SECONDS FOLDER [ATTACK...]
//
// FOLDER has files places.* with a line "ADDRESS PORT" per place, which may change while this runs. Without names of attacks it
// makes all of them, each from an endpoint of its own. "busy" in place of a folder keeps the outsider as busy with itself.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "attack/attacks.h"

namespace fccl::core::attack {
namespace {

using Clock = std::chrono::steady_clock;
using Place = std::pair<std::string, uint16_t>;

constexpr size_t kUnderWay = 8;
constexpr std::chrono::milliseconds kLookInterval{10};
// Ends of connections that are gone are never told of by some providers.
constexpr std::chrono::milliseconds kPatience{50};

struct Counts {
  uint64_t posted = 0;
  uint64_t well = 0;
  uint64_t badly = 0;
};

// One attack on one place.
class Attempt {
 public:
  Attempt(const Attack& attack, const std::string& provider, const Place& place)
      : attack_(attack), end_(provider), peer_(end_.peer(place.first, place.second)) {}

  void go_on(Clock::time_point now) {
    const FabricEnd::Ends ends = end_.poll();
    counts.well += ends.well;
    counts.badly += ends.badly;
    under_way_ -= std::min(under_way_, ends.well + ends.badly);
    if (ends.well + ends.badly > 0) moved_ = now;
    if (now - moved_ > kPatience) under_way_ = 0;
    while (under_way_ < kUnderWay && attack_.post(end_, peer_, counts.posted) == 0) {
      ++counts.posted;
      ++under_way_;
      moved_ = now;
    }
  }
  const char* name() const { return attack_.name; }

  Counts counts;

 private:
  const Attack& attack_;
  FabricEnd end_;
  fi_addr_t peer_;
  size_t under_way_ = 0;
  Clock::time_point moved_ = Clock::now();
};

// The network's work without a victim: messages to an end of this process.
class Busy {
 public:
  explicit Busy(const std::string& provider) : from_(provider), to_(provider) {
    const Place place = to_.name();
    peer_ = from_.peer(place.first, place.second);
    for (int i = 0; i < 64; ++i) to_.receive();
  }
  void go_on() {
    for (size_t came = to_.poll().came; came > 0; --came) to_.receive();
    const FabricEnd::Ends ends = from_.poll();
    under_way_ -= std::min(under_way_, ends.well + ends.badly);
    while (under_way_ < kUnderWay && fi_send(from_.endpoint(), from_.bytes(), 64, from_.descriptor(), peer_, nullptr) == 0)
      ++under_way_;
  }

 private:
  FabricEnd from_;
  FabricEnd to_;
  fi_addr_t peer_;
  size_t under_way_ = 0;
};

class Outsider {
 public:
  Outsider(std::string provider, std::string folder, std::vector<std::string> names)
      : provider_(std::move(provider)), folder_(std::move(folder)), names_(std::move(names)) {}

  void run(Clock::time_point end) {
    Clock::time_point looked;
    for (auto now = Clock::now(); now < end; now = Clock::now()) {
      if (now - looked > kLookInterval) look(), looked = now;
      for (auto& [place, attempts] : attempts_)
        for (const auto& attempt : attempts) attempt->go_on(now);
    }
    for (const auto& [place, attempts] : attempts_) count(attempts);
  }
  void report() const {
    std::printf("{\"places\": %zu", places_);
    for (const auto& [name, counts] : counts_)
      std::printf(", \"%s\": {\"posted\": %lu, \"well\": %lu, \"badly\": %lu}", name.c_str(), counts.posted, counts.well,
                  counts.badly);
    std::printf("}\n");
  }

 private:
  using Attempts = std::vector<std::unique_ptr<Attempt>>;

  void look() {
    std::set<Place> now;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      if (!file.path().filename().string().starts_with("places.")) continue;
      std::ifstream places(file.path());
      Place place;
      while (places >> place.first >> place.second) now.insert(place);
    }
    std::erase_if(attempts_, [&](const auto& each) {
      if (now.contains(each.first)) return false;
      count(each.second);
      return true;
    });
    for (const Place& place : now)
      if (!attempts_.contains(place)) attempts_[place] = attempts_on(place);
  }
  Attempts attempts_on(const Place& place) {
    Attempts attempts;
    for (const Attack& attack : attacks())
      if (names_.empty() || std::ranges::find(names_, attack.name) != names_.end())
        attempts.push_back(std::make_unique<Attempt>(attack, provider_, place));
    ++places_;
    return attempts;
  }
  void count(const Attempts& attempts) {
    for (const auto& attempt : attempts) {
      Counts& counts = counts_[attempt->name()];
      counts.posted += attempt->counts.posted;
      counts.well += attempt->counts.well;
      counts.badly += attempt->counts.badly;
    }
  }

  std::string provider_;
  std::string folder_;
  std::vector<std::string> names_;
  std::map<Place, Attempts> attempts_;
  std::map<std::string, Counts> counts_;
  size_t places_ = 0;
};

}  // namespace
}  // namespace fccl::core::attack

int main(int count, char** words) {
  using namespace fccl::core::attack;
  if (count < 4) {
    std::fprintf(stderr, "usage: outsider PROVIDER SECONDS FOLDER|busy [ATTACK...]\n");
    return 2;
  }
  const auto end = Clock::now() + std::chrono::milliseconds(static_cast<long>(std::atof(words[2]) * 1000));
  if (std::string(words[3]) == "busy") {
    Busy busy(words[1]);
    while (Clock::now() < end) busy.go_on();
    return 0;
  }
  Outsider outsider(words[1], words[3], {words + 4, words + count});
  outsider.run(end);
  outsider.report();
  return 0;
}
