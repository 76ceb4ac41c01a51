#include "collect/torch/record_function.h"

#include <dlfcn.h>

namespace cuptiprof::torch {
namespace {

template <typename F>
bool look_up(void* library, const char* symbol, F& function) {
  function = reinterpret_cast<F>(dlsym(library, symbol));
  return function != nullptr;
}

}  // namespace

Library find_library(const std::string& path) {
  void* found = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (!found) found = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (!found) return {};
  // The handle is kept: what calls us must not be unloaded.
  Library library;
  library.handle = found;
  const bool all =
      look_up(found, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE", library.add_global_callback) &&
      look_up(found, "_ZN2at14removeCallbackEm", library.remove_callback) &&
      look_up(found, "_ZNK2at14RecordFunction4nameEv", library.name) &&
      look_up(found, "_ZN2at14RecordFunction15currentThreadIdEv", library.current_thread) &&
      look_up(found, "_ZN2at15sequence_number4peekEv", library.next_node);
  return all ? library : Library{};
}

}  // namespace cuptiprof::torch
