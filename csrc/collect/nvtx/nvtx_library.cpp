#include "collect/nvtx/nvtx_library.h"

#include <dlfcn.h>

#include <atomic>

#include "base/error.h"

namespace cuptiprof {
namespace {

std::atomic<const nvtx::Link*> g_link{nullptr};
std::atomic<const void*> g_base{nullptr};

}  // namespace

const nvtx::Link& NvtxLibrary::open(const std::string& path) {
  if (const nvtx::Link* link = opened()) return *link;
  const std::string hint = "reinstall cuptiprof: the file belongs to the package";
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    throw Error(ErrorKind::kGeneric, "cannot load " + path + ": " + (why ? why : "unknown error"), hint);
  }
  const auto get = reinterpret_cast<nvtx::GetLink>(dlsym(handle, nvtx::kGetLink));
  const nvtx::Link* link = get ? get() : nullptr;
  if (!link || link->version != nvtx::kLinkVersion)
    throw Error(ErrorKind::kGeneric, path + " is of another version of cuptiprof", hint);
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(get), &info)) g_base.store(info.dli_fbase);
  g_link.store(link, std::memory_order_release);
  return *link;
}

const nvtx::Link* NvtxLibrary::opened() noexcept { return g_link.load(std::memory_order_acquire); }

bool NvtxLibrary::is_it(const void* base) noexcept { return base && base == g_base.load(); }

}  // namespace cuptiprof
