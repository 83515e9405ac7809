// The CSV file of --csv: a row for each size and direction, for spreadsheets and data frames.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "report.h"

namespace fccl::perf {

// A file that did not exist before: the wanted path, or the first free one of name.0.csv, name.1.csv and so on. Every row is in
// the file when `row` returns, so that a run which fails leaves those that it has. Used by one thread of one rank.
class CsvReport {
 public:
  // Opens the file and writes the names of its columns.
  static Result<CsvReport> open(const std::string& path);

  // Returns the path of the file that is written.
  const std::string& path() const { return path_; }
  // Adds a row of a run of `program` on `ranks` ranks.
  void row(const Row& row, std::string_view program, int ranks);
  // Says why the file lacks rows; empty if it has all.
  const std::string& fault() const { return fault_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  CsvReport(std::FILE* file, std::string path) : file_(file), path_(std::move(path)) {}
  void side(const Measurement& measured, std::string_view place, const std::string& start);
  void write(const std::string& line);

  std::unique_ptr<std::FILE, Close> file_;
  std::string path_;
  std::string fault_;
};

}  // namespace fccl::perf
