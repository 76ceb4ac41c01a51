#include "counters/plan/nvperf.h"

#include <dlfcn.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>

#include "base/error.h"

namespace cuptiprof {
namespace {

bool same_bytes(const std::string& one, const std::string& other) {
  std::ifstream a(one, std::ios::binary), b(other, std::ios::binary);
  if (!a || !b) return false;
  using Bytes = std::istreambuf_iterator<char>;
  return std::equal(Bytes(a), Bytes(), Bytes(b), Bytes());
}

// Loads `folder` + `soname`. Throws Error(kDevice) when it cannot be, or when libcupti would find another
// one.
void* preload(const std::string& folder, const std::string& soname) {
  const std::string wanted = folder + soname;
  // Were another copy loaded already, libcupti's look-up by bare name would find that one first.
  const std::string loaded = loaded_library(soname);
  // LOCAL is enough: the loader matches sonames of local libraries too, and no symbol leaks into the process.
  // Never closed: libcupti keeps pointers into it.
  void* handle = dlopen(wanted.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    throw Error(ErrorKind::kDevice, "cannot load " + wanted + ": " + (why ? why : "unknown dlopen error"),
                "metrics need the " + soname +
                    " that belongs to this libcupti: install all of it in one place, for example with "
                    "pip install --force-reinstall 'nvidia-cuda-cupti==13.0.*'");
  }
  const std::string now = loaded_library(soname);
  if (loaded.empty() || loaded == now) {
    if (now.rfind(folder, 0) == 0) return handle;
  }
  if (!same_bytes(wanted, now))
    throw Error(ErrorKind::kDevice,
                now + " is loaded already, but the libcupti in use needs the one beside it (" + wanted + ")",
                "name the libcupti beside the loaded one with CUPTIPROF_CUPTI, or plan before the other "
                "library is loaded");
  return handle;
}

void* preload_once(const Api& api, const std::string& soname) {
  if (api.simulated) return nullptr;
  static std::mutex mutex;                   // guards `done`
  static std::map<std::string, void*> done;  // path -> handle
  const size_t slash = api.path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : api.path.substr(0, slash + 1);
  std::lock_guard lock(mutex);
  if (const auto it = done.find(folder + soname); it != done.end()) return it->second;
  return done[folder + soname] = preload(folder, soname);
}

}  // namespace

void* preload_nvperf_host(const Api& api) { return preload_once(api, "libnvperf_host.so"); }

void preload_nvperf(const Api& api) {
  preload_nvperf_host(api);
  preload_once(api, "libnvperf_target.so");
}

}  // namespace cuptiprof
