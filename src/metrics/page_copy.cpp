// Finds a process's page among its open descriptors, and copies the written parts.
#include "metrics/page_copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <set>
#include <string_view>

#include "base/check.h"
#include "base/signature.h"
#include "metrics/process_page.h"
#include "os/descriptor.h"
#include "os/error_text.h"

namespace fccl::core::metrics {
namespace {

// Exceeds the ranks of any host. Bounds the work if pages name processes without end.
constexpr size_t kMostProcesses = 4096;
// The pages that a process can hold open, one per generation of forks.
constexpr size_t kMostPages = 16;
constexpr const char* kOtherVersion = "its metrics are those of another version of FCCL";

tl::unexpected<Error> cannot_look(int process, const std::string& observed) {
  return fail(fcclSystemError, fmt::format("cannot look at process {}: {}", process, observed));
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

// Opens the descriptors of the process that look like a page. A fork also holds its parent's.
Result<std::vector<Descriptor>> find_pages(int process) {
  const std::string folder = fmt::format("/proc/{}/fd", process);
  const std::unique_ptr<DIR, CloseFolder> listed(::opendir(folder.c_str()));
  if (!listed)
    return cannot_look(process,
                       errno == ENOENT ? "there is no such process" : fmt::format("{}: {}", folder, error_text(errno)));
  const std::string wanted = fmt::format("/memfd:{}", kMemoryName);
  std::vector<Descriptor> found;
  for (const dirent* entry = ::readdir(listed.get()); entry != nullptr && found.size() < kMostPages;
       entry = ::readdir(listed.get())) {
    const std::string path = fmt::format("{}/{}", folder, entry->d_name);
    std::array<char, 64> target;
    const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
    if (length <= 0 || !std::string_view(target.data(), static_cast<size_t>(length)).starts_with(wanted)) continue;
    // Opens without blocking, since the number may name another file by now.
    Descriptor page(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (page) found.push_back(std::move(page));
  }
  if (found.empty()) return cannot_look(process, "it has no communicator of FCCL now");
  return found;
}

std::span<char> bytes_of(Page& page, size_t at, size_t size) { return {reinterpret_cast<char*>(&page) + at, size}; }

size_t offset_in(const Page& page, const void* part) {
  return static_cast<size_t>(static_cast<const char*>(part) - reinterpret_cast<const char*>(&page));
}

// Skips collectives that were never called, because reading their entries would allocate memory.
template <class Read>
bool copy_calls(Page& into, CallTable& calls, const Read& read) {
  for (int collective = 0; collective < fcclNumColls; ++collective) {
    if (!calls.has(collective)) continue;
    const size_t at = offset_in(into, &calls.of[static_cast<size_t>(collective)]);
    if (!read(at, bytes_of(into, at, sizeof(CallsOfCollective)))) return false;
  }
  return true;
}

// Returns the text that ends at the first zero, or after so many bytes.
std::string printable(const char* bytes, size_t most) {
  std::string text(bytes, ::strnlen(bytes, most));
  std::ranges::replace_if(text, [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return text;
}

}  // namespace

PageCopy::PageCopy() : page_(static_cast<Page*>(std::calloc(1, sizeof(Page)))) {
  check(page_ != nullptr, "the system gives a few addresses");
}

template <class Read>
bool PageCopy::copy(const Read& read) {
  constexpr size_t kHead = offsetof(Page, gone) + offsetof(CallTable, of);
  constexpr size_t kHeadOfPart = offsetof(CommunicatorPart, calls) + offsetof(CallTable, of);
  Page& page = *page_;
  if (!read(0, bytes_of(page, 0, kHead)) || !copy_calls(page, page.gone, read)) return false;
  for (CommunicatorPart& part : page.communicators) {
    const size_t at = offset_in(page, &part);
    if (!read(at, bytes_of(page, at, kHeadOfPart))) return false;
    if (value_of(part.is_shown) == 1 && !copy_calls(page, part.calls, read)) return false;
  }
  return true;
}

Result<PageCopy> PageCopy::of(int process) {
  FCCL_TRY_ASSIGN(const auto found, find_pages(process));
  std::string observed;
  for (const Descriptor& memory : found) {
    PageCopy copy;
    observed = copy.fault_of_copying(memory.get(), process);
    if (observed.empty()) return copy;
  }
  return cannot_look(process, observed);
}

bool PageCopy::is_of_other_version(const Error& error) { return error.message.ends_with(kOtherVersion); }

// Returns why the memory is not the page of the process; "" if it is.
std::string PageCopy::fault_of_copying(int memory, int process) {
  struct stat known{};
  const bool is_page = ::fstat(memory, &known) == 0 && S_ISREG(known.st_mode);
  if (!is_page || static_cast<size_t>(known.st_size) != sizeof(Page)) return kOtherVersion;
  const bool is_whole = copy([&](size_t at, std::span<char> into) {
    return ::pread(memory, into.data(), into.size(), static_cast<off_t>(at)) == static_cast<ssize_t>(into.size());
  });
  if (!is_whole || page_->magic != kMagic) return kOtherVersion;
  if (page_->process == process) return {};
  return "it is a fork without a communicator of its own, or has another id where it runs";
}

PageCopy PageCopy::own() {
  PageCopy copy;
  with_own_page([&](const Page& page) {
    copy.copy([&](size_t at, std::span<char> into) {
      read_words(page, at, into);
      return true;
    });
  });
  return copy;
}

std::vector<const CommunicatorPart*> PageCopy::communicators() const {
  std::vector<const CommunicatorPart*> shown;
  for (const CommunicatorPart& each : page_->communicators)
    if (value_of(each.is_shown) == 1) shown.push_back(&each);
  return shown;
}

std::string text_of(const Name& name) { return printable(name.data(), name.size()); }

std::string last_failure_of(const Page& page) {
  return printable(reinterpret_cast<const char*>(page.last_failure.data()), sizeof page.last_failure);
}

std::string name_of(const CommunicatorPart& communicator) { return text_of(communicator.name); }

const char* collective_of(const Flight& flight) {
  const uint64_t collective = value_of(flight.collective);
  return collective < fcclNumColls ? fccl::core::name_of(static_cast<fcclColl_t>(collective)) : "?";
}

std::span<const int32_t> processes_of(const CommunicatorPart& communicator) {
  return std::span(communicator.processes).first(static_cast<size_t>(std::clamp(communicator.places, 0, kPlaces)));
}

Result<std::vector<PageCopy>> pages_from(int process) {
  std::vector<PageCopy> pages;
  std::set<int> known{process};
  std::deque<int> next{process};
  for (; !next.empty(); next.pop_front()) {
    Result<PageCopy> page = next.front() == ::getpid() ? PageCopy::own() : PageCopy::of(next.front());
    if (!page && pages.empty()) return fail(std::move(page).error());
    if (!page) continue;
    for (const CommunicatorPart* communicator : page->communicators())
      for (const int32_t other : processes_of(*communicator))
        if (other > 0 && known.size() < kMostProcesses && known.insert(other).second) next.push_back(other);
    pages.push_back(std::move(*page));
  }
  std::ranges::sort(pages, {}, [](const PageCopy& page) { return page->process; });
  return pages;
}

}  // namespace fccl::core::metrics
