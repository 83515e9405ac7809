// Opens one pidfd per watched process, and shares it.
#include "os/process_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>

#include "os/error_text.h"
#include "os/per_process.h"

namespace fccl::core {
namespace {

constexpr size_t kFewestSwept = 64;

struct Registry {
  std::mutex mutex;
  std::map<int, std::weak_ptr<ProcessWatch>> watches;
  size_t swept_at = kFewestSwept;  // the number of watches at which expired ones are removed next

  // Sweeps rarely enough that the cost per watch does not grow with their number.
  void sweep() {
    if (watches.size() < swept_at) return;
    std::erase_if(watches, [](const auto& entry) { return entry.second.expired(); });
    swept_at = std::max(kFewestSwept, 2 * watches.size());
  }
};

constinit PerProcess<Registry> registry;

}  // namespace

Result<std::shared_ptr<ProcessWatch>> ProcessWatch::of(int pid) {
  if (pid == ::getpid()) return std::shared_ptr<ProcessWatch>(new ProcessWatch(Descriptor{}));
  Registry& all = registry.get();
  const std::lock_guard lock(all.mutex);
  all.sweep();
  // A dead process's watch stays with its holders. The pid may name another process by now.
  if (auto known = all.watches[pid].lock(); known && known->alive()) return known;
  // The kernel opens a pidfd with close-on-exec set.
  Descriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    const int error = errno;
    all.watches.erase(pid);
    if (error == ESRCH) return fail(MessageKind::died, fmt::format("process {} has ended", pid));
    return fail(MessageKind::no_pidfd,
                fmt::format("cannot watch process {} by pidfd_open (Linux 5.3 or later, not blocked by seccomp): {}", pid,
                            error_text(error)));
  }
  std::shared_ptr<ProcessWatch> watch(new ProcessWatch(std::move(pidfd)));
  all.watches[pid] = watch;
  return watch;
}

bool ProcessWatch::alive() const {
  if (!pidfd_) return true;
  pollfd ended{pidfd_.get(), POLLIN, 0};
  return ::poll(&ended, 1, 0) <= 0;
}

}  // namespace fccl::core
