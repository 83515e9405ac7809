// measured: what was measured between emulated hosts, from docs/results and its data.
#pragma once

#include <array>

#include "fccl/fccl.h"

namespace fccl::core::model {

struct Hosts {
  int hosts, ranks_per_host, rails;
};

// The costs that fit the points of hosts_price.csv.
inline constexpr const char* kCalibratedCosts =
    "latency=17.295us,message=52.6366us,wire=0.959346Gbit/s,add=30.1217GB/s,host=60.7417GB/s";

// hosts_16MiB.csv, out of place: milliseconds of AllGather, ReduceScatter and AllReduce.
struct LongRow {
  Hosts hosts;
  std::array<double, 3> milliseconds;
};
inline constexpr LongRow kLongRows[] = {{{2, 1, 1}, {71.3, 70.4, 143.4}},
                                        {{2, 2, 1}, {72.3, 71.3, 143.9}},
                                        {{2, 1, 2}, {35.7, 36.3, 70.4}},
                                        {{2, 2, 2}, {37.7, 37.0, 77.1}}};

// Microseconds by kShortSizes; 0: not measured. Steered is as the calibration was; otherwise tcp's costs stand for those of
// links that nobody calibrated.
constexpr std::array kShortSizes{64, 4096, 32768};
struct ShortRow {
  Hosts hosts;
  const char* where;
  fcclColl_t collective;
  bool is_calibrated;
  std::array<double, kShortSizes.size()> microseconds;
};
inline constexpr ShortRow kShortRows[] = {
    // hosts.md, "Short calls", and hosts_short_unsteered.csv
    {{2, 2, 1}, "1 Gbit/s", fcclCollAllGather, true, {61, 0, 0}},
    {{2, 2, 1}, "1 Gbit/s", fcclCollReduceScatter, true, {81, 0, 0}},
    {{2, 2, 1}, "1 Gbit/s", fcclCollAllReduce, true, {84, 0, 0}},
    {{2, 2, 1}, "unsteered", fcclCollAllGather, true, {27, 21, 144}},
    {{2, 2, 1}, "unsteered", fcclCollReduceScatter, true, {31, 26, 144}},
    {{2, 2, 1}, "unsteered", fcclCollAllReduce, true, {30, 41, 283}},
    // latency_cpp.csv
    {{2, 1, 1}, "unshaped", fcclCollAllReduce, false, {13.5, 29, 0}},
    {{2, 1, 1}, "unshaped", fcclCollBroadcast, false, {20.7, 28.1, 0}},
    {{4, 1, 1}, "unshaped", fcclCollAllReduce, false, {169, 262, 0}},
    {{4, 1, 1}, "unshaped", fcclCollBroadcast, false, {179, 221, 0}},
    // latency_cpp_other_epyc.csv, the middle of each range
    {{2, 1, 1}, "unshaped, other EPYC", fcclCollAllReduce, false, {10.4, 34.2, 0}},
    {{4, 1, 1}, "unshaped, other EPYC", fcclCollAllReduce, false, {152, 188.5, 0}},
};

// docs/explanation/init.md. Messages and seconds are the least of the range: more messages are reports to ranks that wait.
struct InitRow {
  const char* name;
  int hosts, ranks_per_host;
  double messages, kilobytes;
  double seconds;  // 0: not measured
};
inline constexpr InitRow kInitRows[] = {{"512 processes, one host", 1, 512, 2047, 465, 0},
                                        {"16 hosts x 4", 16, 4, 300, 320, 0.6}};

}  // namespace fccl::core::model
