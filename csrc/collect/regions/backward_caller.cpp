#include "collect/regions/backward_caller.h"

#include <dlfcn.h>

#include <memory>

#include "base/stamp_clock.h"
#include "collect/regions/regions.h"

namespace cuptiprof {
namespace {

// As c10::DebugInfoBase: one virtual destructor. Never destroyed: it lies in static memory, without an owner.
struct CallerInfo {
  virtual ~CallerInfo() = default;
  uint32_t slot = 0;
};

CallerInfo g_callers[kMaxThreads];

// A kind is the address of a name, in earlier releases an enumeration of one byte of which seven are taken:
// this address has another low byte than those.
struct alignas(256) Kind {
  char before[0xc0] = {};
  std::string_view name = "cuptiprof: thread that called backward";
};
const Kind g_kind;

// c10::ThreadLocalDebugInfo's; the argument is a register in either form.
using Push = void (*)(const void* kind, std::shared_ptr<CallerInfo> info);
using Pop = std::shared_ptr<CallerInfo> (*)(const void* kind);
using Get = CallerInfo* (*)(const void* kind);

struct DebugInformation {
  Push push = nullptr;
  Pop pop = nullptr;
  std::atomic<Get> get{nullptr};
} g_information;

template <typename Function>
Function look_up(void* library, const char* name) noexcept {
  return reinterpret_cast<Function>(dlsym(library, name));
}

// Where torch's engine is called, its libraries are loaded.
bool find() noexcept {
  static const bool found = [] {
    void* c10 = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
    if (!c10) return false;
    DebugInformation& d = g_information;
    d.push = look_up<Push>(c10,
                           "_ZN3c1020ThreadLocalDebugInfo5_pushENS_13DebugInfoKindESt10shared_"
                           "ptrINS_13DebugInfoBaseEE");
    d.pop = look_up<Pop>(c10, "_ZN3c1020ThreadLocalDebugInfo4_popENS_13DebugInfoKindE");
    const auto get = look_up<Get>(c10, "_ZN3c1020ThreadLocalDebugInfo3getENS_13DebugInfoKindE");
    if (!d.push || !d.pop || !get) return false;
    for (uint32_t i = 0; i < kMaxThreads; ++i) g_callers[i].slot = i;
    d.get.store(get, std::memory_order_release);
    return true;
  }();
  return found;
}

std::atomic<uint32_t> g_session{1};

}  // namespace

bool mark_backward_caller(ThreadSlot& slot) noexcept {
  if (!find()) return false;
  try {
    const std::shared_ptr<CallerInfo> nobodys;
    g_information.push(&g_kind.name, {nobodys, &g_callers[slot.index]});
    return true;
  } catch (...) {
    return false;
  }
}

void unmark_backward_caller() noexcept {
  try {
    g_information.pop(&g_kind.name);
  } catch (...) {
    // Somebody put something on top of it inside of backward and left it there. A mark that stays is believed
    // only while its thread is inside backward.
  }
}

const ThreadSlot* marked_backward_caller() noexcept {
  const Get get = g_information.get.load(std::memory_order_acquire);
  const CallerInfo* info = get ? get(&g_kind.name) : nullptr;
  return info ? &thread_slot(info->slot) : nullptr;
}

void note_backward_caller(ThreadSlot& slot) noexcept {
  const ThreadSlot* caller = marked_backward_caller();
  const uint32_t number = caller ? caller->index + 1 : 0;
  const uint64_t noted = uint64_t{g_session.load(std::memory_order_acquire)} << 32 | number;
  if (noted == slot.works_for) return;
  if (slot.ring.push(
          {.stamp = read_stamp(), .task = 0, .object = 0, .id = number, .kind = EventKind::kWorksFor},
          slot.open_regions))
    slot.works_for = noted;
  else
    count(g_region_overflow);
}

void forget_backward_callers() noexcept { g_session.fetch_add(1, std::memory_order_release); }

}  // namespace cuptiprof
