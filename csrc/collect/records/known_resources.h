// Devices, contexts and streams of one result, each in one row: CUPTI describes them when they come to be,
// and again each time their kind is switched on (cuptiActivityEnableAndDump). Decoder thread only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_set>

#include "store/store.h"

namespace cuptiprof {

struct Api;

class KnownResources {
 public:
  bool is_new_device(uint32_t device) { return x_devices.insert(device).second; }
  bool is_new_context(uint32_t context) { return x_contexts.insert(context).second; }
  bool is_new_stream(uint32_t context, uint32_t stream) {
    // A program that makes streams without end has rows without end; what is known of them has a limit.
    if (x_streams.size() >= kMaxStreams) return true;
    return x_streams.insert(uint64_t{context} << 32 | stream).second;
  }
  void forget() {
    x_devices.clear();
    x_contexts.clear();
    x_streams.clear();
  }

  // Rows of devices that no record described, from the driver: whether the dump gives devices is not known of
  // every version. Nothing before CUDA is initialised: there is no work then either.
  void add_missing_devices(const Api& api, Store& store);

 private:
  static constexpr size_t kMaxStreams = 1u << 16;
  std::unordered_set<uint32_t> x_devices;
  std::unordered_set<uint32_t> x_contexts;
  std::unordered_set<uint64_t> x_streams;  // context << 32 | stream
};

}  // namespace cuptiprof
