#include <climits>
#include <cstdlib>

#include "base/error.h"
#include "cupti/api.h"

namespace cuptiprof {
namespace {

template <class Function>
struct Refuse;

template <class... Arguments>
struct Refuse<CUptiResult (*)(Arguments...)> {
  static CUptiResult call(Arguments...) { return CUPTI_ERROR_UNKNOWN; }
};

}  // namespace

std::shared_ptr<const Api> planning_library(const std::string& path, int version) {
  char resolved[PATH_MAX];
  if (path.find('\0') != std::string::npos || !realpath(path.c_str(), resolved))
    throw Error(ErrorKind::kDevice, "there is no " + path.substr(0, path.find('\0')),
                "pip install nvidia-cuda-cupti, or name a libcupti.so with CUPTIPROF_CUPTI");
  auto api = std::make_shared<Api>();
  api->version = version;
  api->planning_only = true;
  api->path = resolved;
  api->found_by = "for planning only";
#define CP_REQUIRED(name) api->name = Refuse<decltype(api->name)>::call;
#define CP_OPTIONAL(name, since, feature, without)
#define CP_DRIVER(name)
#define CP_PROBE_DRIVER(name)
#include "cupti/api.def"
#undef CP_REQUIRED
#undef CP_OPTIONAL
#undef CP_DRIVER
#undef CP_PROBE_DRIVER
  return api;
}

}  // namespace cuptiprof
