// Lists descriptors by /proc, and compares sockets by their names.
#include "ofi/descriptors.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

namespace fccl::core::ofi {
namespace {

bool is_socket(int descriptor) {
  struct stat status;
  return ::fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode);
}

bool is_epoll(int descriptor) {
  std::array<char, 64> what{};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  return ::readlink(link.c_str(), what.data(), what.size() - 1) > 0 &&
         std::string_view(what.data()) == "anon_inode:[eventpoll]";
}

void close_on_exec(int descriptor) {
  if (const int flags = ::fcntl(descriptor, F_GETFD); flags >= 0) ::fcntl(descriptor, F_SETFD, flags | FD_CLOEXEC);
}

// Returns "" for a socket without such a name.
template <class Ask>
SocketName name_of(int socket, Ask ask) {
  sockaddr_storage name{};
  socklen_t bytes = sizeof name;
  if (ask(socket, reinterpret_cast<sockaddr*>(&name), &bytes) != 0) return {};
  const auto* begin = reinterpret_cast<const std::byte*>(&name);
  return {begin, begin + std::min<size_t>(bytes, sizeof name)};
}

}  // namespace

std::vector<int> open_descriptors() {
  std::vector<int> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error); !error && entry != end(entry); entry.increment(error))
    found.push_back(std::atoi(entry->path().filename().c_str()));
  if (error) return {};
  // The descriptor of the listing itself is closed by now.
  std::erase_if(found, [](int descriptor) { return ::fcntl(descriptor, F_GETFD) < 0; });
  std::ranges::sort(found);
  return found;
}

void close_new_on_exec(std::span<const int> before) {
  // The listing failed, so no descriptor is known to be new.
  if (before.empty()) return;
  for (const int descriptor : open_descriptors())
    if (!std::ranges::binary_search(before, descriptor) && (is_socket(descriptor) || is_epoll(descriptor)))
      close_on_exec(descriptor);
}

int listening_socket(const SocketName& own) {
  for (const int descriptor : open_descriptors()) {
    int listens = 0;
    socklen_t bytes = sizeof listens;
    if (is_socket(descriptor) && ::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) == 0 && listens != 0 &&
        name_of(descriptor, ::getsockname) == own)
      return descriptor;
  }
  return -1;
}

std::vector<int> close_connections_on_exec(const SocketName& own, std::span<const SocketName> peers) {
  std::vector<int> accepted;
  for (const int descriptor : open_descriptors()) {
    if (!is_socket(descriptor)) continue;
    const SocketName peer = name_of(descriptor, ::getpeername);
    const bool came = !peer.empty() && name_of(descriptor, ::getsockname) == own;
    if (came || std::ranges::binary_search(peers, peer)) close_on_exec(descriptor);
    if (came) accepted.push_back(descriptor);
  }
  return accepted;
}

}  // namespace fccl::core::ofi
