// The price of a call between hosts, and the constants that explain measured times best.
#pragma once

#include <string>
#include <vector>

namespace fccl::perf {

// The values of FCCL_COSTS, in seconds, and seconds per byte.
struct Costs {
  double latency;     // from the end of a send to the moment when the receiver may continue
  double message;     // time of a rank for each message
  double wire_byte;   // on one rail
  double added_byte;  // for each byte that a rank reads to add it
  double host_byte;   // for each byte that a rank copies within its host
};

// The hosts of a run, as the price sees them.
struct Hosts {
  int hosts = 0;
  int ranks = 0;       // on all hosts
  int most_ranks = 0;  // on the host that has the most
  int columns = 0;     // ranks of the host that has the fewest
  int rails = 1;       // NICs of each host

  // Returns the number of blocks that the busiest column carries for its host.
  int carried_blocks() const { return (most_ranks + columns - 1) / columns; }
};

// FCCL_COSTS that force the number of slices: one slice, since a message costs a second; or the library's largest number, since
// messages cost nothing.
inline constexpr const char* kOneSlice = "latency=0us,message=1000000us,wire=1Gbit/s,add=1GB/s,host=1GB/s";
inline constexpr const char* kManySlices = "latency=0us,message=0us,wire=1Gbit/s,add=1GB/s,host=1GB/s";
inline constexpr int kMostSlices = 64;

// The work of a call, from which its price follows. Bytes are those of the whole call, cut into slices of equal size.
struct Load {
  int entries;  // messages by which a rank tells the others of a call, ahead of the plan's
  int rounds;
  int messages;           // one after another, in a slice; each of one chunk
  int messages_per_port;  // through the busiest port, in a slice
  int slices;
  double chunk_bytes;  // a host's chunk, on one of its rails
  double copied_bytes;
  double added_bytes;
};

Load all_gather_load(const Hosts& hosts, double block_bytes, int slices);      // pairwise
Load reduce_scatter_load(const Hosts& hosts, double block_bytes, int slices);  // pairwise
Load broadcast_load(const Hosts& hosts, double bytes, int slices);             // by chain

// Returns seconds, by the library's formula (docs/explanation/algorithms.md, "The price").
double predict(const Load& load, const Costs& costs);

struct Point {
  Load load;
  double seconds;  // measured, above zero
};

// Returns the costs that minimise the sum of |log(predicted / measured)|, so that points which no costs explain do not spoil
// the others. All are positive and finite. A cost that the points do not show stays near a common value.
Costs fit(const std::vector<Point>& points);

// Returns the error of the prediction in percent; below zero if it is too short.
double error_percent(const Point& point, const Costs& costs);
// Returns the median of the absolute errors of at least one point.
double median_error_percent(const std::vector<Point>& points, const Costs& costs);

// Returns the costs in the format of FCCL_COSTS, with the median error of the points that they were fitted to.
std::string text_of(const Costs& costs, double error_percent);

}  // namespace fccl::perf
