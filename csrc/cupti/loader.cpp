#include <dlfcn.h>
#include <link.h>

#include <climits>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "cupti/api.h"
#include "cupti/record_versions.h"

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

// Functions that tell releases apart.
constexpr const char* kFirstIn13_2 = "cuptiActivityGetStructSize";
constexpr const char* kFirstIn13_3 = "cuptiGetTimestamp_v2";
constexpr const char* kDriverHint =
    "install the NVIDIA driver, or start the container with --gpus all; without a GPU use device=\"sim\"";

// A driver that works: the toolkit's link stub of the same name does not count. Null: why is then in
// `reason`.
void* open_driver(std::string& reason) {
  void* handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_GLOBAL);
  if (!handle) {
    reason = "no NVIDIA driver here (" + dl_error() + ")";
    return nullptr;
  }
  int version = 0;
  const auto get_version =
      reinterpret_cast<decltype(&cuDriverGetVersion)>(dlsym(handle, "cuDriverGetVersion"));
  if (get_version && get_version(&version) == CUDA_SUCCESS && version > 0) return handle;
  reason = "no NVIDIA driver here (" + path_of(handle) + " is not a working driver)";
  return nullptr;
}

// The library is never closed, and its callbacks may be on their way at any time: they use its functions.
// What was loaded before is given again.
std::shared_ptr<const Api> kept_for_good(std::shared_ptr<Api> api) {
  static std::mutex mutex;  // guards the list
  static auto& kept = *new std::vector<std::shared_ptr<const Api>>;
  const std::lock_guard lock(mutex);
  for (const auto& known : kept)
    if (known->path == api->path && known->found_by == api->found_by && known->version == api->version &&
        known->driver_version == api->driver_version && known->simulated == api->simulated)
      return known;
  return kept.emplace_back(std::move(api));
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

  // The driver first: libcupti looks for it when it is loaded.
  std::string no_driver;
  void* driver = request.simulated ? nullptr : open_driver(no_driver);

  // Never closed: CUPTI keeps threads and callbacks that outlive us.
  void* handle = dlopen(request.path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!handle)
    throw Error(ErrorKind::kDevice, "cannot load " + request.path + ": " + dl_error(),
                "pip install nvidia-cuda-cupti, or name a libcupti.so with CUPTIPROF_CUPTI");
  api->path = path_of(handle);
  if (api->path.empty()) api->path = request.path;
  const char* absent = nullptr;
#define CP_REQUIRED(name)                                                \
  api->name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name)); \
  if (!api->name && !absent) absent = #name;
#define CP_OPTIONAL(name, since, feature, without) \
  api->name = reinterpret_cast<decltype(&::name)>(dlsym(handle, #name));
#define CP_DRIVER(name)            \
  if (request.simulated || driver) \
    api->name = reinterpret_cast<decltype(&::name)>(dlsym(request.simulated ? handle : driver, #name));
#define CP_PROBE_DRIVER(name) CP_DRIVER(name)
#include "cupti/api.def"
#undef CP_REQUIRED
#undef CP_OPTIONAL
#undef CP_DRIVER
#undef CP_PROBE_DRIVER
#define CP_LOAD(name, arguments) \
  api->of_subscriber.name = reinterpret_cast<decltype(api->of_subscriber.name)>(dlsym(handle, #name));
  CP_OF_SUBSCRIBER(CP_LOAD)
#undef CP_LOAD
  if (absent)
    throw Error(ErrorKind::kDevice, api->path + " lacks " + absent + ": not a CUPTI of CUDA 12 or 13",
                "pip install 'nvidia-cuda-cupti>=13.0', or name a libcupti.so with CUPTIPROF_CUPTI");
  const bool is_standin = dlsym(handle, "cuptisim_reset") != nullptr;
  if (is_standin != request.simulated)
    throw Error(
        ErrorKind::kDevice,
        is_standin ? api->path + " is the simulated device" : api->path + " is not the simulated device",
        "simulated devices are asked for by name: device=\"sim\"");

  // Without a driver 13.2 recurses to death in the first call of any function, and newer ones answer 999 to
  // everything; what the file exports tells them apart without a call.
  if (!request.simulated && !driver && dlsym(handle, kFirstIn13_2))
    throw Error(ErrorKind::kDevice,
                no_driver + "; this libcupti (" + api->path + ", CUDA 13.2 or newer) needs one", kDriverHint);
  if (driver && dlsym(handle, kFirstIn13_2) && !dlsym(handle, kFirstIn13_3)) {
    if (const CUresult rc = api->cuInit ? api->cuInit(0) : CUDA_ERROR_NOT_FOUND; rc != CUDA_SUCCESS)
      throw Error(
          ErrorKind::kDevice,
          "cuInit returned " + std::to_string(rc) + "; libcupti of CUDA 13.2 (" + api->path + ") would crash",
          "check the driver with `nvidia-smi` and run `cuptiprof doctor`");
  }
  uint32_t version = 0;
  if (const CUptiResult rc = api->cuptiGetVersion(&version); rc != CUPTI_SUCCESS)
    throw Error(ErrorKind::kDevice,
                api->path + " does not work here: cuptiGetVersion returned " + std::to_string(rc),
                "check the driver with `nvidia-smi` and run `cuptiprof doctor`");
  api->version = static_cast<int>(version);
  if (api->cuDriverGetVersion && api->cuDriverGetVersion(&api->driver_version) != CUDA_SUCCESS)
    api->driver_version = 0;
  return kept_for_good(std::move(api));
}

std::string cuda_version(int v) {
  if (v >= 100000) return std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100);
  // Before CUDA 13 the number counted releases of the API (the list is in cupti_version.h).
  static constexpr struct {
    int api;
    const char* cuda;
  } kReleases[] = {{18, "11.8"}, {19, "12.0"}, {20, "12.2"}, {21, "12.3"}, {22, "12.4"},
                   {23, "12.5"}, {24, "12.6"}, {26, "12.8"}, {27, "12.9"}, {28, "12.9"}};
  for (const auto& r : kReleases)
    if (r.api == v) return r.cuda;
  return "";
}

std::vector<Feature> features(const Api& api) {
  std::vector<Feature> out;
#define CP_REQUIRED(function)
#define CP_OPTIONAL(function, since, feature, without)                                                 \
  if (const char* name = feature) {                                                                    \
    const bool works = api.function != nullptr;                                                        \
    out.push_back(                                                                                     \
        {name, works, since, works ? "" : #function, works ? "" : static_cast<const char*>(without)}); \
  }
#define CP_DRIVER(function)
#define CP_PROBE_DRIVER(function)
#include "cupti/api.def"
#undef CP_REQUIRED
#undef CP_OPTIONAL
#undef CP_DRIVER
#undef CP_PROBE_DRIVER
  auto field = [&](const char* name, uint32_t version, const char* since, const char* record,
                   const char* without) {
    const bool works = static_cast<uint32_t>(api.version) >= version;
    out.push_back({name, works, since, works ? "" : std::string(record) + " records", works ? "" : without});
  };
  field("copies counted in a batch", kMemcpyHasCopyCount, "12.8", "CUpti_ActivityMemcpy6",
        "memcpys.copy_count stays 0");
  field("results of synchronisations", kSyncHasReturnValue, "12.8", "CUpti_ActivitySynchronization2",
        "synchronizations.return_value stays 0");
  field("green contexts", kContextHasGreen, "12.8", "CUpti_ActivityContext3", "contexts.is_green stays 0");
  field("device-launched kernels", kKernelHasDeviceLaunched, "13.0", "CUpti_ActivityKernel10",
        "kernels launched by the GPU itself are not marked");
  return out;
}

}  // namespace cuptiprof
