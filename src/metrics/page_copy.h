// PageCopy: the contents of a process's page at one moment.
#pragma once

#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "metrics/page.h"

namespace fccl::core::metrics {

// A copy, so that the page's writer cannot change it during reading. A value; used by one thread at a time. Another process may
// have written any numbers: a reader checks each before it uses it as an index.
class PageCopy {
 public:
  // Copies the page of a process. Error: fcclSystemError, saying whether the process is absent, uses no FCCL, or belongs to
  // another user.
  static Result<PageCopy> of(int process);
  // True if the error says that the process shows a page of another version of FCCL.
  static bool is_of_other_version(const Error& error);
  // Copies the page of the calling process; never fails.
  static PageCopy own();

  const Page& operator*() const { return *page_; }
  const Page* operator->() const { return page_.get(); }
  // Returns the communicators that exist now.
  std::vector<const CommunicatorPart*> communicators() const;

 private:
  struct Free {
    void operator()(Page* page) const { std::free(page); }
  };
  PageCopy();
  // Copies the written parts of a page. `read(at, into)` copies bytes from an offset on, and returns false if it cannot.
  template <class Read>
  bool copy(const Read& read);
  std::string fault_of_copying(int memory, int process);

  std::unique_ptr<Page, Free> page_;
};

// Returns a name in characters that cannot control a terminal, whatever the process wrote.
std::string text_of(const Name& name);
std::string name_of(const CommunicatorPart& communicator);
// Returns the text of the last failure that the process has counted, in such characters; "" if it has counted none.
std::string last_failure_of(const Page& page);
// Returns the name of a flight's collective; "?" if the number is unknown.
const char* collective_of(const Flight& flight);
// Returns the processes of a communicator's ranks on this host.
std::span<const int32_t> processes_of(const CommunicatorPart& communicator);

// Copies the pages of a process, of the processes that share a host and a communicator with it, of their partners and so on, in
// the order of process ids. Leaves out processes that cannot be read; only for the first one this is an error.
Result<std::vector<PageCopy>> pages_from(int process);

}  // namespace fccl::core::metrics
