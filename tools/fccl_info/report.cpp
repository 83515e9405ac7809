// Puts the sections of the report together.
#include "fccl_info/report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <string_view>

#include "discovery/host_identity.h"
#include "fccl_info/gpus_command.h"
#include "fccl_info/look.h"
#include "fccl_info/report_limits.h"
#include "fccl_info/report_processes.h"
#include "fccl_info/report_versions.h"
#include "fccl_info/topology_commands.h"
#include "metrics_server/text.h"

namespace fccl::core {
namespace {

std::string section(std::string_view title, const Result<std::string>& text) {
  return fmt::format("\n== {}\n{}", title, text ? *text : text.error().message + "\n");
}

std::string failures_of(const Look& look) {
  std::string text;
  for (const Job& job : look.host.jobs)
    for (const metrics::PageCopy& page : job)
      if (const std::string failure = metrics::last_failure_of(*page); !failure.empty())
        text += fmt::format("process {}, {:.1f} s ago: {}\n", page->process,
                            1e-3 * static_cast<double>(to_ms(look.at) - metrics::value_of(page->failed_ms)), failure);
  return text.empty() ? "no living process shows a failure; add the output of the job, which has the first error\n" : text;
}

// Leaves out what is most of the text: the buckets of histograms, the lines of help and what is 0.
std::string metrics_of(const Look& look) {
  std::string kept;
  for (const Job& job : look.host.jobs) {
    const std::string text = metrics::text_of(job, to_ms(look.at));
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n') + 1);
      rest.remove_prefix(line.size());
      if (!line.starts_with('#') && !line.starts_with("fccl_call_seconds_bucket") && !line.ends_with(" 0\n")) kept += line;
    }
  }
  return kept.empty() ? "none\n" : kept;
}

}  // namespace

Result<std::string> report(Words, Form) {
  const Look look{Clock::now(), jobs_of_host()};
  std::string text = fmt::format("FCCL report of {}, {:%Y-%m-%dT%H:%M:%SZ}\n", host_name(), fmt::gmtime(std::time(nullptr)));
  text += section("Versions", versions());
  text += section("Variables here", variables_here());
  text += section("Topology", describe_topology({}, Form::text));
  text += section("GPUs", list_gpus({}, Form::text));
  text += section("Limits here", limits_here());
  text += section("Processes", processes_of(look));
  text += section("Jobs", text_of(look, nullptr));
  text += section("Last failures", failures_of(look));
  text += section("Metrics", metrics_of(look));
  return text;
}

}  // namespace fccl::core
