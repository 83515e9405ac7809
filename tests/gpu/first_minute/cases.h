// The questions of the first minute on a GPU, each a case of the probe.
#pragma once

#include "team.h"

namespace fccl::gpu::bare {

// Reports the driver's description of the GPU.
void about(Rank& rank);

// ---- Who waits (waits.cpp)
// Whether a copy between two places of host memory waits in the driver for its stream.
void host_to_host(Rank& rank);
// Whom the making and dropping of things keeps waiting while a stream waits.
void set_up(Rank& rank);
// How many waiting streams hold up one that need not wait; with 32 connections where these are asked for.
void connections(Rank& rank);
void connections_32(Rank& rank);

// ---- Graphs (captures.cpp)
// What may be called while a graph is recorded, and whether the recording survives it.
void captures(Rank& rank);

// ---- Memory (memory.cpp)
// What an arena is: mappings that processes share, one to write and one to read.
void shared_mappings(Rank& rank);
// Memory as torch's expandable segments have it: pieces side by side.
void pieces(Rank& rank);
// Refusals that the conformance suite expects, each of which may end the context.
void pageable_word(Rank& rank);
void beyond(Rank& rank);
void no_context(Rank& rank);

// ---- Times (times.cpp)
void figures(Rank& rank);
// Times a process's first context, alone and beside a process that keeps the GPU open.
void openings(Rank& rank);
// Streams of two processes that wait for each other's words, relayed by their hosts as the library does.
void two_processes(Rank& rank);
// When a process is gone that ended while its stream waits.
void ends(Rank& rank);

}  // namespace fccl::gpu::bare
