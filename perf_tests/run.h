// State that all ranks of a process share while they measure, and how a failing call ends the run.
#pragma once

#include <source_location>
#include <vector>

#include "arguments.h"
#include "cases.h"
#include "csv_report.h"
#include "json_report.h"
#include "launch/team.h"
#include "peers/limit_loops.h"
#include "report.h"

namespace fccl::perf {

// Lives on the main thread's stack as long as other threads run. The reports are null except on the first process, and
// only its main thread uses them.
struct Run {
  const Arguments& arguments;
  const Collective& collective;
  const std::vector<Case>& cases;
  Team& team;
  UniqueId id;
  std::string program;
  std::vector<DeviceInfo> devices;  // devices of this process's threads
  LoopChoice loops = {};            // for the limit
  Table* table = nullptr;
  JsonReport* json = nullptr;
  CsvReport* csv = nullptr;
};

// Reports the failure on stderr, as nccl-tests does, and ends every process.
[[noreturn]] void fail(const Run& run, int thread, const Error& error, std::source_location where);

// Ends the run unless `result` is a success.
template <class T>
void require(const Run& run, int thread, const Result<T>& result,
             std::source_location where = std::source_location::current()) {
  if (!result) fail(run, thread, result.error(), where);
}

}  // namespace fccl::perf
