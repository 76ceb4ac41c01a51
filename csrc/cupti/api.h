// One table of pointers to what libcupti and libcuda export; members are named as the functions. Nothing is
// linked.
#pragma once
#include <cuda.h>
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_result.h>
#include <cupti_target.h>
#include <cupti_version.h>

#include "cupti/newer.h"

#include <memory>
#include <string>
#include <vector>

#include "cupti/subscriber_api.h"

namespace cuptiprof {

struct Api {
#define CP_REQUIRED(name) decltype(&::name) name = nullptr;
#define CP_OPTIONAL(name, since, feature, without) decltype(&::name) name = nullptr;
#define CP_DRIVER(name) decltype(&::name) name = nullptr;
#define CP_PROBE_DRIVER(name) CP_DRIVER(name)
#include "cupti/api.def"
#undef CP_REQUIRED
#undef CP_OPTIONAL
#undef CP_DRIVER
#undef CP_PROBE_DRIVER

  SubscriberApi of_subscriber;  // CUDA 13.3

  int version = 0;         // cuptiGetVersion
  int driver_version = 0;  // cuDriverGetVersion; 0: no driver
  bool simulated = false;
  bool planning_only = false;  // from planning_library(): no function of it can be used
  std::string path;            // file the functions come from
  std::string found_by;        // how that file was chosen
};

struct LoadRequest {
  std::string path;        // of libcupti
  std::string found_by;    // for people: "PyPI wheel", "already loaded", ...
  bool simulated = false;  // the stand-in: it exports the driver functions too, and says so itself
};

// Throws Error (kDevice) when the file cannot be loaded, a required function is missing, or there is no
// driver that this libcupti could work with. Up to CUDA 13.1 it can be loaded without one (records can then
// be read, not made).
std::shared_ptr<const Api> load_cupti(const LoadRequest& request);

// A libcupti that needs a driver where there is none (CUDA 13.2 and newer). It is not loaded: metrics can be
// planned with the libnvperf beside it, and every CUPTI function answers CUPTI_ERROR_UNKNOWN, as those
// releases do. `version`: as cuptiGetVersion would give it; 0: unknown.
std::shared_ptr<const Api> planning_library(const std::string& path, int version);

// Path of an already loaded library of this soname; empty: none.
std::string loaded_library(const std::string& soname);

// What needs more than the required functions.
struct Feature {
  std::string name;
  bool works;
  std::string since;    // first CUDA whose libcupti has it; empty: every supported one
  std::string missing;  // what the library lacks; empty when it works
  std::string without;  // what happens instead
};
std::vector<Feature> features(const Api& api);

// CUDA version of a cuptiGetVersion() value: "12.6" of 24, "13.0" of 130001; empty: unknown.
std::string cuda_version(int cupti_version);

}  // namespace cuptiprof
