// One table of pointers to what libcupti and libcuda export; members are named as the functions. Nothing is linked.
#pragma once
#include <cuda.h>
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_result.h>
#include <cupti_version.h>

#include <memory>
#include <string>
#include <vector>

namespace cuptiprof {

struct Api {
#define CP_REQUIRED(name) decltype(&::name) name = nullptr;
#define CP_OPTIONAL(name, feature) decltype(&::name) name = nullptr;
#define CP_DRIVER(name) decltype(&::name) name = nullptr;
#include "cupti/api.def"
#undef CP_REQUIRED
#undef CP_OPTIONAL
#undef CP_DRIVER

  int version = 0;         // cuptiGetVersion
  int driver_version = 0;  // cuDriverGetVersion; 0: no driver
  bool simulated = false;
  std::string path;      // file the functions come from
  std::string found_by;  // how that file was chosen
};

struct LoadRequest {
  std::string path;            // of libcupti
  std::string found_by;        // for people: "PyPI wheel", "already loaded", ...
  bool simulated = false;      // the stand-in: it exports the driver functions too, and says so itself
  bool safe_without_driver = false;  // the file is known to be <= 13.1, which survives calls without a driver
};

// Throws Error (kDevice) when the file cannot be loaded or a required function is missing.
std::shared_ptr<const Api> load_cupti(const LoadRequest& request);

// Path of an already loaded library of this soname; empty: none.
std::string loaded_library(const std::string& soname);

struct Feature {
  std::string name;
  bool works;
  std::string missing;  // the function that the library lacks
};
std::vector<Feature> features(const Api& api);

}  // namespace cuptiprof
