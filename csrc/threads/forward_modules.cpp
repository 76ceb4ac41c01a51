#include "threads/forward_modules.h"

#include <sys/mman.h>

#include "base/error.h"

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

void ForwardModules::forget() noexcept { madvise(x_entries, kEntries * sizeof(Entry), MADV_DONTNEED); }

}  // namespace cuptiprof
