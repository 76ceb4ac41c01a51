#include "collect/nvtx/copies.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "collect/nvtx/nvtx_library.h"

namespace cuptiprof {
namespace {

// nvtxGlobals_v3 of nvtxImpl.h, in words of 8 bytes: the state, what it hands to tools, its function
// pointers, and tables of their addresses by module.
constexpr size_t kCallbacks = 1, kVersionInfo = 3, kFunctions = 6;
constexpr size_t kRangePop = kFunctions + 10;
constexpr size_t kCoreFunctions = 15;
constexpr size_t kMostWords = 256;  // what we look at, of any version 3
constexpr uint64_t kCallbacksBytes = 16, kVersionInfoBytes = 24, kVersion = 3;
constexpr uint32_t kComplete = 2;

// Words that may lie between what a sanitizer watches, and that the program may just be writing.
[[gnu::no_sanitize("address", "thread")]] uint64_t word_at(const uint64_t* words, size_t i) {
  return __atomic_load_n(words + i, __ATOMIC_ACQUIRE);
}

bool is_globals(const uint64_t* words, size_t room) {
  if (word_at(words, kCallbacks) != kCallbacksBytes || word_at(words, kVersionInfo) != kVersionInfoBytes ||
      word_at(words, kVersionInfo + 1) != kVersion || word_at(words, 0) > kComplete)
    return false;
  const auto first = reinterpret_cast<uint64_t>(words + kFunctions);
  for (size_t at = kFunctions; at + kCoreFunctions <= room; ++at) {
    if (word_at(words, at) != first) continue;
    for (size_t i = 1; i < kCoreFunctions; ++i)
      if (word_at(words, at + i) != first + i * sizeof(uint64_t)) return false;
    return true;
  }
  return false;
}

NvtxCopy copy_of(const char* library, const uint64_t* words) {
  NvtxCopy out{library, NvtxCopy::State::kFresh, {}};
  if (word_at(words, 0) != kComplete) return out;
  const uint64_t handler = word_at(words, kRangePop);
  Dl_info info{};
  if (handler == 0) {
    out.state = NvtxCopy::State::kNobody;
  } else if (dladdr(reinterpret_cast<void*>(handler), &info) && info.dli_fname) {
    out.tool = info.dli_fname;
    const bool ours = NvtxLibrary::is_it(info.dli_fbase);
    out.state = ours ? NvtxCopy::State::kOurs : NvtxCopy::State::kOtherTool;
  } else {
    out.state = NvtxCopy::State::kOtherTool;
  }
  return out;
}

int look_at(dl_phdr_info* object, size_t, void* found) {
  auto& copies = *static_cast<std::vector<NvtxCopy>*>(found);
  for (size_t s = 0; s < object->dlpi_phnum; ++s) {
    const auto& segment = object->dlpi_phdr[s];
    if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_W)) continue;
    // Where the file's data lie; what is cleared at load has no table in it.
    uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    const uintptr_t end = begin + segment.p_filesz;
    begin = (begin + 7) & ~uintptr_t{7};
    for (uintptr_t at = begin; at + (kFunctions + kCoreFunctions) * 8 <= end; at += 8) {
      const auto* words = reinterpret_cast<const uint64_t*>(at);
      if (is_globals(words, std::min<size_t>((end - at) / 8, kMostWords)))
        copies.push_back(copy_of(object->dlpi_name ? object->dlpi_name : "", words));
    }
  }
  return 0;
}

}  // namespace

std::vector<NvtxCopy> nvtx_copies() {
  std::vector<NvtxCopy> out;
  dl_iterate_phdr(&look_at, &out);
  return out;
}

}  // namespace cuptiprof
