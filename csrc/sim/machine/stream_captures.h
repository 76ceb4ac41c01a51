// Which streams are being captured into graphs, by which thread, and what breaks that. Any thread may call;
// while nothing is captured most of it costs one load.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <memory>

#include "sim/machine/machine.h"

namespace sim {

struct Captured {
  uint32_t graph_id = 0;        // 0: the stream is not being captured
  std::shared_ptr<void> graph;  // as begin_sequence got it
  bool invalidated = false;
};
// Any thread's capture: what another thread launches into the stream is captured too.
Captured captured(const Context* context, uint32_t stream);

// These return a CUresult.
uint32_t begin_sequence(const Context* context, uint32_t stream, uint32_t graph_id,
                        std::shared_ptr<void> graph, CUstreamCaptureMode mode);
uint32_t end_sequence(const Context* context, uint32_t stream, Captured& ended);
// A stream that waits for an event of a captured one is captured from then on.
void join_sequence(const Context* context, uint32_t stream, uint32_t graph_id);

// Waiting for a context of which a stream is being captured invalidates the capture, whatever its mode and
// whoever waits. True: there was one.
bool invalidate_captures(const Context* context);
// The same for the one that this stream belongs to, or that captures this graph.
bool invalidate_capture(const Context* context, uint32_t stream);
bool invalidate_capture(uint32_t graph_id);
// A potentially unsafe call (cudaMalloc): forbidden to the calling thread by captures of its own that are not
// relaxed, and by global ones of others. True: there were such, and they are invalid now.
bool unsafe_call_conflicts();

// A stream, or a context, that goes takes its captures with it.
void drop_captures(const Context* context, uint32_t stream);
void drop_captures(const Context* context);
void clear_captures();

}  // namespace sim
