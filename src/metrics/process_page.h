// The page of this process, with a part for each of its communicators.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "metrics/page.h"

namespace fccl::core::metrics {

// Holds the counts of one communicator: on the page while there is room, else in private memory. The communicator's statistics
// own it. Any thread may make one. Its destructor adds its counts to the page's sums.
class CommunicatorPlace {
 public:
  CommunicatorPlace();
  ~CommunicatorPlace();
  CommunicatorPlace(const CommunicatorPlace&) = delete;
  CommunicatorPlace& operator=(const CommunicatorPlace&) = delete;

  CommunicatorPart& part() const { return *part_; }
  bool is_hidden() const { return hidden_ != nullptr; }
  // Makes the part visible to other processes, after `write` has filled it.
  void show(const std::function<void(CommunicatorPart&)>& write);

 private:
  std::unique_ptr<CommunicatorPart> hidden_;
  CommunicatorPart* part_;
};

// Returns the page of this process. A fork makes a new page. It lives as long as the process.
Page& page_of_process();
bool has_communicators();
// Calls `tell` whenever the last communicator of this process has ended, on the thread that ended it. A later call replaces
// it; a fork has none.
void call_when_unused(void (*tell)());
// Calls read(page) while no part is added to the page or removed.
void with_own_page(const std::function<void(const Page&)>& read);
// Copies words of a page that other threads write at the same time.
void read_words(const Page& page, size_t at, std::span<char> into);
// Counts a communicator that failed, or could not be made, and shows why.
void count_error(fcclResult_t kind, std::string_view text);
struct NetworkNames {
  std::string_view transport, provider;
  std::span<const std::string> nics;  // by rail
};
// Shows what the process uses between hosts. A rail whose NIC was shown keeps its name.
void show_network(const NetworkNames& names);
// Writes a name of which the memory holds zeros.
void write_name(Name& into, std::string_view name);
// Sums the calls of a collective over all communicators that this process has or had.
fcclCallMetrics_t calls_of_process(fcclColl_t collective, size_t path, size_t size);
// Adds the calls of one communicator to the sum.
void add(fcclCallMetrics_t& sum, const Calls& calls);

}  // namespace fccl::core::metrics
