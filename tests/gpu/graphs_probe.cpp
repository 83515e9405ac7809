// Question 2, of graphs: can stream memory operations be captured or added as nodes, and are their flags consumed at every
// replay?
#include <string>

#include "device_probe.h"
#include "flags.h"
#include "samples.h"

namespace {

using namespace fccl::gpu;

constexpr int kGraphFlags = 8;
constexpr int kGraphReplays = 100;
constexpr double kPatience = 5;  // seconds that the replays have

// The operations of a graph: each flag is awaited, reset, and answered by another one.
void enqueue_round(const Stream& stream, const Flags& flags) {
  for (int each = 0; each < kGraphFlags; ++each) {
    enqueue_wait(stream, flags.device(each), 1);
    enqueue_write(stream, flags.device(each), 0);
    enqueue_write(stream, flags.device(kGraphFlags + each), 1);
  }
}

Graph build_round(const Flags& flags) {
  cudaGraph_t made = nullptr;
  GPU_CHECK(cudaGraphCreate(&made, 0));
  Graph graph(made);
  CUgraphNode before = nullptr;
  CUcontext context = nullptr;
  GPU_CHECK(driver().current_context(&context));
  for (int each = 0; each < kGraphFlags; ++each) {
    CUstreamBatchMemOpParams operations[] = {wait_operation(flags.device(each), 1), write_operation(flags.device(each), 0),
                                             write_operation(flags.device(kGraphFlags + each), 1)};
    const CUDA_BATCH_MEM_OP_NODE_PARAMS parameters{context, 3, operations, 0};
    CUgraphNode node = nullptr;
    GPU_CHECK(driver().graph_add_batch(&node, graph.get(), each == 0 ? nullptr : &before, each == 0 ? 0 : 1, &parameters));
    before = node;
  }
  return graph;
}

void replay(Rank& rank, const Graph& graph, const Flags& flags, const std::string& how) {
  cudaGraphExec_t made = nullptr;
  GPU_CHECK(cudaGraphInstantiate(&made, graph.get(), 0));
  const GraphRun run(made);
  const Stream stream = make_stream();
  const Deadline deadline = Deadline::in(kPatience);
  const Watchdog watchdog(flags, deadline);
  flags.set_all(0);
  bool consumed = true;
  Samples launch, whole;
  for (int repeat = 0; repeat < kGraphReplays; ++repeat) {
    const auto begin = Clock::now();
    GPU_CHECK(cudaGraphLaunch(run.get(), stream.get()));
    launch.add(seconds_since(begin) * 1e6);
    for (int each = 0; each < kGraphFlags; ++each) flags.host(each).store(1, std::memory_order_release);
    for (int each = 0; each < kGraphFlags; ++each) {
      flags.wait(kGraphFlags + each, 1, deadline, "a graph's answer");
      flags.host(kGraphFlags + each).store(0, std::memory_order_release);
    }
    drain(stream, deadline, "a graph");
    whole.add(seconds_since(begin) * 1e6);
    for (int each = 0; each < kGraphFlags; ++each) consumed = consumed && flags.host(each).load() == 0;
  }
  watchdog.require_quiet("replaying a graph");
  rank.report(works(how + ": 100 replays consume their flags", consumed));
  rank.report(launch.row(how + ": launching 8 times wait, reset, answer", "us"));
  rank.report(whole.row(how + ": from launch to end", "us"));
}

void in_a_captured_graph(Rank& rank) {
  const Flags flags(rank.shared());
  const auto round = [&flags](const Stream& stream) { enqueue_round(stream, flags); };
  replay(rank, capture(round), flags, "captured from a stream");
}

void in_a_built_graph(Rank& rank) {
  const Flags flags(rank.shared());
  replay(rank, build_round(flags), flags, "built of batch nodes");
}

}  // namespace

int main(int argc, char** argv) {
  return run_probe(2, {{"a captured graph", 1, 20, in_a_captured_graph}, {"a graph of batch nodes", 1, 20, in_a_built_graph}},
                   argc, argv);
}
