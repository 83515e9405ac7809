// Hands a stream's items to the worker, and lists all streams.
#include "operations/stream.h"

#include <array>
#include <atomic>

#include "operations/stream_item.h"
#include "operations/worker.h"

namespace fccl::core {
namespace {

// Holds the addresses of all streams, without a lock that a fork might find taken. It grows and is never freed.
class Addresses {
 public:
  void add(Stream* stream) {
    for (Addresses* part = this;; part = part->next()) {
      for (std::atomic<Stream*>& slot : part->slots_) {
        Stream* none = nullptr;
        if (slot.compare_exchange_strong(none, stream, std::memory_order_acq_rel)) return;
      }
    }
  }
  void remove(const Stream* stream) {
    for (Addresses* part = this; part != nullptr; part = part->next_.load(std::memory_order_acquire))
      for (std::atomic<Stream*>& slot : part->slots_)
        if (slot.load(std::memory_order_relaxed) == stream) slot.store(nullptr, std::memory_order_release);
  }
  Stream* find(const void* address) const {
    for (const Addresses* part = this; part != nullptr; part = part->next_.load(std::memory_order_acquire))
      for (const std::atomic<Stream*>& slot : part->slots_)
        if (Stream* stream = slot.load(std::memory_order_acquire); stream == address && stream != nullptr) return stream;
    return nullptr;
  }

 private:
  Addresses* next() {
    Addresses* found = next_.load(std::memory_order_acquire);
    if (found != nullptr) return found;
    auto* fresh = new Addresses;
    if (next_.compare_exchange_strong(found, fresh, std::memory_order_acq_rel)) return fresh;
    delete fresh;
    return found;
  }

  std::array<std::atomic<Stream*>, 64> slots_{};
  std::atomic<Addresses*> next_{nullptr};
};

constinit Addresses addresses;

}  // namespace

Stream::Stream() : worker_(&Worker::of_process()) { addresses.add(this); }

Result<std::unique_ptr<Stream>> Stream::make() {
  std::unique_ptr<Stream> made(new Stream);
  FCCL_TRY(made->worker_->add(*made));
  return made;
}

Stream* Stream::find(const void* address) { return addresses.find(address); }

// A host function may launch others on its own stream before that is empty.
Stream::~Stream() {
  const bool is_usable = check_usable().has_value();
  while (is_usable && !is_empty()) (void)synchronize();
  addresses.remove(this);
  if (is_usable) worker_->remove(*this);
}

Result<void> Stream::check_usable() const {
  if (worker_ == &Worker::of_process()) return {};
  return fail(MessageKind::forked, "this process is a fork of the one that made the stream: make a new one after fork()");
}

void Stream::enqueue(std::unique_ptr<StreamItem> item) { worker_->enqueue(*this, std::move(item)); }

Result<bool> Stream::query() const {
  FCCL_TRY(check_usable());
  const std::lock_guard lock(worker_->mutex());
  if (!result_) return fail(result_.error());
  return items_.empty();
}

bool Stream::is_empty() const {
  const std::lock_guard lock(worker_->mutex());
  return items_.empty();
}

Result<uint64_t> Stream::position() const {
  FCCL_TRY(check_usable());
  const std::lock_guard lock(worker_->mutex());
  return issued_;
}

Result<void> Stream::synchronize() {
  FCCL_TRY_ASSIGN(const auto issued, position());
  FCCL_TRY(synchronize_to(issued, {Clock::time_point::max()}));
  return {};
}

Result<bool> Stream::synchronize_to(uint64_t position, Deadline deadline) {
  FCCL_TRY(check_usable());
  if (!worker_->wait_for(*this, position, deadline)) return false;
  const std::lock_guard lock(worker_->mutex());
  if (!result_) return fail(result_.error());
  return true;
}

}  // namespace fccl::core
