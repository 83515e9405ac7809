// One rank's part of a run: its communicator, its buffers, and the loop over types, operators, roots and sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "arguments.h"
#include "collective.h"
#include "elements.h"
#include "launch.h"
#include "report.h"
#include "verify.h"

namespace fccl::perf {

// What all ranks of a process share.
struct Run {
  const Arguments& arguments;
  const Collective& collective;
  Team& team;
  UniqueId id;
  Report* report;  // null except on rank 0's process
};

// Made and used by one thread. Ends all processes of the run when a call of the library fails.
class Sweep {
 public:
  Sweep(const Run& run, int thread);

  // Runs everything; the number of (rank, check) pairs of the whole run that saw a wrong element.
  std::uint64_t operator()();

 private:
  // One row's choices.
  struct Case {
    const ElementType& type;
    const Operator& op;
    Place place;
  };
  struct Buffers {
    std::byte* send;
    std::byte* recv;
  };

  void run_cases();
  void run_sizes(const Case& chosen);
  void warm_up(const Case& chosen);
  Layout layout(const Case& chosen, std::size_t bytes) const;
  // Where call number `call` reads and writes: successive calls use successive parts of memory, so that caches are not
  // measured.
  Buffers buffers(const Case& chosen, const Layout& layout, bool in_place, std::size_t call);
  void start(const Case& chosen, const Layout& layout, const Buffers& buffers);
  void finish();
  Measurement measure(const Case& chosen, const Layout& layout, bool in_place);
  double time_calls(const Case& chosen, const Layout& layout, bool in_place);
  std::uint64_t count_wrong_in_checks(const Case& chosen, const Layout& layout, bool in_place);

  const Run& run_;
  const int thread_;
  Communicator communicator_;
  std::optional<Stream> stream_;
  std::vector<std::byte> send_;
  std::vector<std::byte> recv_;
  std::uint64_t bad_checks_ = 0;
};

}  // namespace fccl::perf
