// Ends a run with a message and an exit status.
#include "run.h"

#include <unistd.h>

#include <cstdio>

#include "exit_code.h"

namespace fccl::perf {

void fail(const Run& run, int thread, const Error& error, std::source_location where) {
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  if (error.code == fcclTimeout && run.arguments.timeout_seconds > 0)
    std::fprintf(stderr, "%s: Test timeout (%ds) %s:%u\n", host, run.arguments.timeout_seconds, where.file_name(),
                 where.line());
  std::fprintf(stderr, "%s: Test FCCL failure %s:%u '%s / %s'\n .. %s pid %d: Test failure %s:%u\n", host, where.file_name(),
               where.line(), fcclGetErrorString(error.code), error.message.c_str(), host, static_cast<int>(getpid()),
               where.file_name(), where.line());
  if (thread == 0 && run.table) run.table->error(error.message);
  if (thread == 0 && run.json) run.json->fail(error.message);
  run.team.processes().abort(exit_code_of(error.code));
}

}  // namespace fccl::perf
