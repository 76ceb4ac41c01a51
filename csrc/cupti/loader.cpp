#include <dlfcn.h>
#include <link.h>

#include <climits>
#include <cstdlib>

#include "base/error.h"
#include "cupti/api.h"

namespace cuptiprof {
namespace {

std::string dl_error() {
  const char* e = dlerror();
  return e ? e : "unknown dlopen error";
}

std::string path_of(void* handle) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map || !map->l_name) return {};
  char resolved[PATH_MAX];
  return realpath(map->l_name, resolved) ? resolved : map->l_name;
}

}  // namespace

std::string loaded_library(const std::string& soname) {
  void* handle = dlopen(soname.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return {};
  std::string path = path_of(handle);
  dlclose(handle);
  return path;
}

std::shared_ptr<const Api> load_cupti(const LoadRequest& request) {
  auto api = std::make_shared<Api>();
  api->simulated = request.simulated;
  api->found_by = request.found_by;

  // The driver first: without it libcupti 13.2 and newer crash or answer 999 to everything.
  void* driver = request.simulated ? nullptr : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_GLOBAL);
  if (!request.simulated && !driver && !request.safe_without_driver)
    throw Error(ErrorKind::kDevice, "no NVIDIA driver (libcuda.so.1): " + dl_error(),
                "install the NVIDIA driver, or in a container start it with --gpus all; without a GPU use "
                "device=\"sim\"");

  // Never closed: CUPTI keeps threads and callbacks that outlive us.
  void* handle = dlopen(request.path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!handle)
    throw Error(ErrorKind::kDevice, "cannot load " + request.path + ": " + dl_error(),
                "pip install nvidia-cuda-cupti, or name a libcupti.so with CUPTIPROF_CUPTI");
  api->path = path_of(handle);
  if (api->path.empty()) api->path = request.path;
  const char* absent = nullptr;
#define CP_REQUIRED(name)                                                     \
  api->name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name));      \
  if (!api->name && !absent) absent = #name;
#define CP_OPTIONAL(name, feature) api->name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name));
#define CP_DRIVER(name)                                                                                   \
  if (request.simulated || driver)                                                                        \
    api->name = reinterpret_cast<decltype(&::name)>(dlsym(request.simulated ? handle : driver, #name));
#include "cupti/api.def"
#undef CP_REQUIRED
#undef CP_OPTIONAL
#undef CP_DRIVER
  if (absent)
    throw Error(ErrorKind::kDevice, api->path + " lacks " + absent + ": not a CUPTI of CUDA 12 or 13",
                "pip install 'nvidia-cuda-cupti>=12.6', or name a libcupti.so with CUPTIPROF_CUPTI");
  const bool is_standin = dlsym(handle, "cuptisim_reset") != nullptr;
  if (is_standin != request.simulated)
    throw Error(ErrorKind::kDevice,
                is_standin ? api->path + " is the simulated device" : api->path + " is not the simulated device",
                "simulated devices are asked for by name: device=\"sim\"");
  uint32_t version = 0;
  if (const CUptiResult rc = api->cuptiGetVersion(&version); rc != CUPTI_SUCCESS)
    throw Error(ErrorKind::kDevice, api->path + " does not work here: cuptiGetVersion returned " + std::to_string(rc),
                "libcupti 13.3 and newer need the NVIDIA driver; run `cuptiprof doctor`");
  api->version = static_cast<int>(version);
  if (api->cuDriverGetVersion) api->cuDriverGetVersion(&api->driver_version);
  return api;
}

std::vector<Feature> features(const Api& api) {
  std::vector<Feature> out;
  auto add = [&](std::string feature, bool works, const char* function) {
    for (Feature& f : out) {
      if (f.name != feature) continue;
      if (f.works && !works) f = {std::move(feature), false, function};
      return;
    }
    out.push_back({std::move(feature), works, works ? "" : function});
  };
#define CP_REQUIRED(function)
#define CP_OPTIONAL(function, feature) add(feature, api.function != nullptr, #function);
#define CP_DRIVER(function)
#include "cupti/api.def"
#undef CP_REQUIRED
#undef CP_OPTIONAL
#undef CP_DRIVER
  return out;
}

}  // namespace cuptiprof
