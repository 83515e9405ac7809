// Writes numbers with six digits, since no time repeats to more of them.
#include "csv_report.h"

#include <cerrno>
#include <charconv>
#include <concepts>
#include <cstring>

#include "new_file.h"

namespace fccl::perf {
namespace {

constexpr char kTitles[] =
    "program,ranks,type,op,root,size_bytes,count,place,time_us,algbw_gb_per_s,busbw_gb_per_s,wrong,queued_us,p50_us,p99_us,ulp,"
    "apart_us,last_us\n";

constexpr int kDigits = 6;

template <std::integral Number>
std::string text_of(Number number) {
  return std::to_string(number);
}

// Rounds first, because spreadsheets read digits and no exponent.
std::string text_of(double number) {
  char text[512];
  double rounded = number;
  const char* end = std::to_chars(text, text + sizeof text, number, std::chars_format::general, kDigits).ptr;
  std::from_chars(text, end, rounded);
  return {text, std::to_chars(text, text + sizeof text, rounded, std::chars_format::fixed).ptr};
}

// Returns the next cell; empty if nothing was measured.
template <class Number>
std::string cell(const std::optional<Number>& number) {
  return number ? "," + text_of(*number) : ",";
}

std::string cell(double number) { return "," + text_of(number); }

}  // namespace

Result<CsvReport> CsvReport::open(const std::string& path) {
  const NewFile made = make_file(path, ".csv");
  if (made.file == nullptr)
    return Error{fcclInvalidArgument, "--csv: making the file " + made.path + " failed (" + std::strerror(errno) +
                                          "), so nothing was measured; name a file in a folder that can be written"};
  CsvReport report(made.file, made.path);
  report.write(kTitles);
  if (!report.fault_.empty()) return Error{fcclSystemError, report.fault_};
  return report;
}

void CsvReport::write(const std::string& line) {
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size() && std::fflush(file_.get()) == 0) return;
  if (fault_.empty())
    fault_ = "--csv: writing to " + path_ + " failed (" + std::strerror(errno) + "), so rows are missing there";
}

void CsvReport::row(const Row& row, std::string_view program, int ranks) {
  std::string start(program);
  start += "," + text_of(ranks) + "," + std::string(row.type) + "," + std::string(row.op) + "," + text_of(row.root) + "," +
           text_of(row.bytes) + "," + text_of(row.count);
  side(row.out_of_place, "out_of_place", start);
  if (row.in_place) side(*row.in_place, "in_place", start);
}

void CsvReport::side(const Measurement& measured, std::string_view place, const std::string& start) {
  const auto microseconds = [](double seconds) { return cell(seconds * 1e6); };
  std::string line = start + "," + std::string(place);
  line += microseconds(measured.seconds);
  line += cell(measured.algorithm_bandwidth / 1e9) + cell(measured.bus_bandwidth / 1e9) + cell(measured.wrong);
  line += microseconds(measured.queued_seconds);
  line += measured.iterations ? microseconds(measured.iterations->statistics.p50) : ",";
  line += measured.iterations ? microseconds(measured.iterations->statistics.p99) : ",";
  line += cell(measured.ulp);
  line += measured.skew ? microseconds(measured.skew->apart) : ",";
  line += measured.skew ? microseconds(measured.skew->last) : ",";
  write(line + "\n");
}

}  // namespace fccl::perf
