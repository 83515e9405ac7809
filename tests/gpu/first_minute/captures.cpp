// Calls that are allowed while a thread records a graph in the default mode.
#include <sys/mman.h>

#include "first_minute/bare_driver.h"
#include "first_minute/cases.h"

namespace fccl::gpu::bare {

namespace {

struct Called {
  const char* name;
  std::function<CUresult()> call;
};

CUresult relaxed(const std::function<CUresult()>& call) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  BARE(cuThreadExchangeStreamCaptureMode)(&mode);
  const CUresult said = call();
  BARE(cuThreadExchangeStreamCaptureMode)(&mode);
  return said;
}

// The library and the torch backend are relaxed around all that they ask: a graph that ends by that is wrong.
void ask(Rank& rank, CUstream recorded, const Called& each, bool is_relaxed, bool same_thread) {
  MUST(BARE(cuStreamBeginCapture)(recorded, CU_STREAM_CAPTURE_MODE_GLOBAL));
  const auto call = [&] { return is_relaxed ? relaxed(each.call) : each.call(); };
  const CUresult said = same_thread ? call() : in_another_thread(call);
  CUgraph graph = nullptr;
  const CUresult ended = BARE(cuStreamEndCapture)(recorded, &graph);
  if (graph != nullptr) BARE(cuGraphDestroy)(graph);
  const std::string what =
      text("%s, a graph of %s thread%s", each.name, same_thread ? "this" : "another", is_relaxed ? ", relaxed" : "");
  rank.report(works(what, !is_relaxed || ended == CUDA_SUCCESS, text_of(said) + "; the graph: " + text_of(ended)));
}

}  // namespace

void captures(Rank& rank) {
  open();
  const CUstream recorded = make_stream(), other = make_stream();
  CUevent before = nullptr;
  MUST(BARE(cuEventCreate)(&before, CU_EVENT_DISABLE_TIMING));
  MUST(BARE(cuEventRecord)(before, other));
  drains(other, 1000);
  const Pinned flags(kPage);
  std::byte* const page = pages(kPage, PROT_READ | PROT_WRITE);
  const std::vector<Called> calls = {
      {"cuEventQuery", [&] { return BARE(cuEventQuery)(before); }},
      {"cuStreamQuery", [&] { return BARE(cuStreamQuery)(other); }},
      {"cuStreamGetCtx and IsCapturing",
       [&] {
         CUcontext context = nullptr;
         CUstreamCaptureStatus status{};
         const CUresult first = BARE(cuStreamGetCtx)(other, &context);
         return first != CUDA_SUCCESS ? first : BARE(cuStreamIsCapturing)(other, &status);
       }},
      {"a word on another stream", [&] { return enqueue(other, {{false, flags.word_at(1), 1}}); }},
      {"cuMemHostRegister", [&] { return BARE(cuMemHostRegister)(page, kPage, CU_MEMHOSTREGISTER_DEVICEMAP); }},
      {"cuEventCreate",
       [&] {
         CUevent made = nullptr;
         return BARE(cuEventCreate)(&made, CU_EVENT_DISABLE_TIMING);
       }},
      {"cuStreamCreate", [&] {
         CUstream made = nullptr;
         return BARE(cuStreamCreate)(&made, CU_STREAM_NON_BLOCKING);
       }}};
  for (const bool is_relaxed : {false, true})
    for (const bool same_thread : {true, false})
      for (const Called& each : calls) {
        ask(rank, recorded, each, is_relaxed, same_thread);
        BARE(cuMemHostUnregister)(page);
      }
}

}  // namespace fccl::gpu::bare
