#include "sim/machine/stream_captures.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

namespace sim {
namespace {

struct Sequence {
  uint32_t graph_id;
  std::shared_ptr<void> graph;
  CUstreamCaptureMode mode;
  uint32_t thread;
  bool invalidated = false;
  std::vector<std::pair<const Context*, uint32_t>> streams;  // the first is the one that capture began on

  bool holds(const Context* context, uint32_t stream) const {
    return std::find(streams.begin(), streams.end(), std::pair{context, stream}) != streams.end();
  }
  bool touches(const Context* context) const {
    return std::any_of(streams.begin(), streams.end(), [&](const auto& s) { return s.first == context; });
  }
};

std::atomic<size_t> g_open{0};  // most calls come while nothing is captured
std::mutex g_captures_mutex;    // guards the list
std::vector<Sequence>& sequences() {
  static auto* list = new std::vector<Sequence>;  // never destroyed (Machine::get)
  return *list;
}

template <typename Which>
bool invalidate(Which which) {
  if (g_open.load() == 0) return false;
  const std::lock_guard lock(g_captures_mutex);
  bool any = false;
  for (Sequence& s : sequences()) {
    if (!which(s)) continue;
    s.invalidated = any = true;
  }
  return any;
}

template <typename Which>
void drop(Which which) {
  if (g_open.load() == 0) return;
  const std::lock_guard lock(g_captures_mutex);
  std::erase_if(sequences(), which);
  g_open = sequences().size();
}

uint32_t calling_thread() {
  static std::atomic<uint32_t> threads{0};
  static thread_local const uint32_t number = ++threads;
  return number;
}

}  // namespace

Captured captured(const Context* context, uint32_t stream) {
  if (g_open.load() == 0) return {};
  const std::lock_guard lock(g_captures_mutex);
  for (const Sequence& s : sequences())
    if (s.holds(context, stream)) return {s.graph_id, s.graph, s.invalidated};
  return {};
}

uint32_t begin_sequence(const Context* context, uint32_t stream, uint32_t graph_id,
                        std::shared_ptr<void> graph, CUstreamCaptureMode mode) {
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(g_captures_mutex);
  for (const Sequence& s : sequences())
    if (s.holds(context, stream)) return CUDA_ERROR_ILLEGAL_STATE;
  sequences().push_back({graph_id, std::move(graph), mode, calling_thread(), false, {{context, stream}}});
  g_open = sequences().size();
  return CUDA_SUCCESS;
}

uint32_t end_sequence(const Context* context, uint32_t stream, Captured& ended) {
  const std::lock_guard lock(g_captures_mutex);
  auto& all = sequences();
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const Sequence& s) { return s.holds(context, stream); });
  if (at == all.end()) return CUDA_ERROR_ILLEGAL_STATE;
  if (at->streams.front() != std::pair{context, stream}) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (at->mode != CU_STREAM_CAPTURE_MODE_RELAXED && at->thread != calling_thread())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  ended = {at->graph_id, std::move(at->graph), at->invalidated};
  all.erase(at);
  g_open = all.size();
  return ended.invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

void join_sequence(const Context* context, uint32_t stream, uint32_t graph_id) {
  const std::lock_guard lock(g_captures_mutex);
  for (Sequence& s : sequences())
    if (s.graph_id == graph_id && !s.holds(context, stream)) s.streams.emplace_back(context, stream);
}

bool invalidate_captures(const Context* context) {
  return invalidate([&](const Sequence& s) { return s.touches(context); });
}

bool invalidate_capture(const Context* context, uint32_t stream) {
  return invalidate([&](const Sequence& s) { return s.holds(context, stream); });
}

bool invalidate_capture(uint32_t graph_id) {
  return invalidate([&](const Sequence& s) { return s.graph_id == graph_id; });
}

bool unsafe_call_conflicts() {
  return invalidate([thread = calling_thread()](const Sequence& s) {
    return s.thread == thread ? s.mode != CU_STREAM_CAPTURE_MODE_RELAXED
                              : s.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
  });
}

void drop_captures(const Context* context, uint32_t stream) {
  drop([&](const Sequence& s) { return s.streams.front() == std::pair{context, stream}; });
}

void drop_captures(const Context* context) {
  drop([&](const Sequence& s) { return s.touches(context); });
}

void clear_captures() {
  drop([](const Sequence&) { return true; });
}

}  // namespace sim
