#include "threads/forward_modules.h"

#include <sys/mman.h>

#include "base/error.h"
#include "threads/frame_tree.h"

namespace cuptiprof {

void ForwardModules::map() {
  if (x_entries) return;
  void* mapped = mmap(nullptr, kEntries * sizeof(Entry), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    throw Error(ErrorKind::kBudget, "cannot map 16 MiB of address space for modules in backward",
                "raise ulimit -v, or leave \"modules\" out of sources=");
  x_entries = static_cast<Entry*>(mapped);  // zeros are free
}

uint32_t of_node(uint32_t frame, const NodeModule& node) noexcept {
  if (node.module == 0 || g_frame_tree.module_of(frame) != node.around) return frame;
  const uint32_t python = g_frame_tree.python_of(frame);
  if (node.module == kNoModule) return python;
  const uint32_t with = g_frame_tree.with_module(python, node.module);
  if (with == 0) g_frames_lost.fetch_add(1, std::memory_order_relaxed);
  return with != 0 ? with : python;
}

void ForwardModules::forget() noexcept { madvise(x_entries, kEntries * sizeof(Entry), MADV_DONTNEED); }

}  // namespace cuptiprof
