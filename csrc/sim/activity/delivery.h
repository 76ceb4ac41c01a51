// Completed buffers on their way to the profiler: handed over by the library's own thread, or by one that
// flushes. No buffer is locked while the profiler is called.
#pragma once
#include <cupti_activity.h>

#include <cstddef>
#include <cstdint>

namespace sim {

struct Buffer {
  uint8_t* data = nullptr;
  size_t size = 0;
  size_t used = 0;
  size_t max_records = 0;  // 0: as many as fit
  size_t records = 0;
  uint32_t client = 0;
  uint64_t complete_at = 0;  // when the last piece of work in it ends

  bool has_room(size_t bytes) const {
    return used + bytes <= size && (max_records == 0 || records < max_records);
  }
};

// As cuptiActivityRegisterCallbacks_v2 has them.
using SharedRequest = void(CUPTIAPI*)(uint8_t** buffer, size_t* size, size_t* max_records, void* info);
using SharedComplete = void(CUPTIAPI*)(uint8_t* buffer, size_t size, size_t valid, void* info);

void set_complete_callback(CUpti_BuffersCallbackCompleteFunc complete);
// null: what it left behind is nobody's.
void set_complete_callback(uint32_t client, SharedComplete complete);
// A buffer came from the profiler; it is outstanding until complete_now().
void note_requested();
uint32_t buffers_outstanding();

// By the library's own thread, once its work is done.
void complete_later(const Buffer& buffer);
// In the calling thread. Work that still runs at `now` is handed over unfinished (kAllDone: none does).
constexpr uint64_t kAllDone = 0;
void complete_now(Buffer& buffer, uint64_t now);
// What waits for the library's own thread: in the calling thread, if complete by `now` or `all`.
void complete_pending(uint64_t now, bool all);
// Hands those back without records.
void discard_pending();

}  // namespace sim
