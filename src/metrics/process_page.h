// The page of this process, and a part of it for each of its communicators.
#pragma once

#include <functional>
#include <memory>

#include "metrics/page.h"

namespace fccl::metrics {

// The part of one communicator: on the page while it has room, else in memory that nobody else sees. Owned by the
// communicator's statistics. Any thread may make one; what it has counted goes to the page's sums at its end.
class CommunicatorPlace {
 public:
  CommunicatorPlace();
  ~CommunicatorPlace();
  CommunicatorPlace(const CommunicatorPlace&) = delete;
  CommunicatorPlace& operator=(const CommunicatorPlace&) = delete;

  CommunicatorPart& part() const { return *part_; }
  bool is_hidden() const { return hidden_ != nullptr; }
  // From now on others see the part as `write` leaves it.
  void show(const std::function<void(CommunicatorPart&)>& write);

 private:
  std::unique_ptr<CommunicatorPart> hidden_;
  CommunicatorPart* part_;
};

// The page of this process, which a fork makes anew. Lives as long as the process.
Page& page_of_process();
bool has_communicators();
// Calls read(page) while no part of it comes or goes.
void with_own_page(const std::function<void(const Page&)>& read);
// Copies words of a page that others write meanwhile.
void read_words(const Page& page, size_t at, std::span<char> into);
// Of this process and a collective, over all communicators that it has or had.
fcclCallMetrics_t calls_of_process(fcclColl_t collective, size_t path, size_t size);
// Adds those of one communicator.
void add(fcclCallMetrics_t& sum, const Calls& calls);

}  // namespace fccl::metrics
