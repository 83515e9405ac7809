// PageCopy: what the page of a process said at one moment.
#pragma once

#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "metrics/page.h"

namespace fccl::metrics {

// Memory of its own, so that whoever wrote the page can change nothing that is being read. A value; one thread at a time. The
// numbers in it are a stranger's: readers check each before they use it as an index.
class PageCopy {
 public:
  // fcclSystemError with what was looked at: no such process, none that uses FCCL, or one of somebody else's.
  static Result<PageCopy> of(int process);
  // Of the calling process; always there.
  static PageCopy own();

  const Page& operator*() const { return *page_; }
  const Page* operator->() const { return page_.get(); }
  // Of its communicators that are there now.
  std::vector<const CommunicatorPart*> communicators() const;

 private:
  struct Free {
    void operator()(Page* page) const { std::free(page); }
  };
  PageCopy();
  // What has been written of a page. `read(at, into)` gives bytes of it from an offset on; false: there are none.
  template <class Read>
  bool copy(const Read& read);
  std::string fault_of_copying(int memory, int process);

  std::unique_ptr<Page, Free> page_;
};

// Of a communicator: of letters that do nothing to a terminal, whatever was written.
std::string name_of(const CommunicatorPart& communicator);
// The name of a collective, "?" for what is none.
const char* collective_of(const Flight& flight);
// The processes of a communicator's ranks on this host.
std::span<const int32_t> processes_of(const CommunicatorPart& communicator);

// Of a process, of those with which it shares a host in a communicator, and so on, by their ids. Whoever cannot be looked at is
// left out, save the first one.
Result<std::vector<PageCopy>> pages_from(int process);

}  // namespace fccl::metrics
