#include "collect/records/recorded_buffers.h"

#include <cupti_activity.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/error.h"
#include "collect/records/record_decoder.h"
#include "cupti/api.h"

namespace cuptiprof {
namespace {

constexpr size_t kTableBytes = 256u << 20;
constexpr size_t kMaxBuffer = 64u << 20;
// A record at the end of a cut buffer may be read past it.
constexpr size_t kMargin = 512;

Error bad_file(const std::string& what) {
  return {ErrorKind::kGeneric, "recorded activity buffer: " + what, "record it again with this version"};
}

// Calls visit(field) for each pointer in the record. Throws for kinds whose pointers are not known.
template <typename Visit>
void for_each_string(CUpti_Activity* record, Visit&& visit) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL:
      visit(&reinterpret_cast<CUpti_ActivityKernel10*>(record)->name);
      return;
    case CUPTI_ACTIVITY_KIND_DEVICE:
      visit(&reinterpret_cast<CUpti_ActivityDevice5*>(record)->name);
      return;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
    case CUPTI_ACTIVITY_KIND_MEMSET:
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_CONTEXT:
    case CUPTI_ACTIVITY_KIND_STREAM:
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return;
    default:
      throw bad_file("activity kind " + std::to_string(static_cast<int>(record->kind)) + " is not recorded");
  }
}

// Fields that the decoder never reads (reserved0) may hold anything.
template <typename Visit>
void for_each_record(const Api& api, uint8_t* data, size_t valid, Visit&& visit) {
  CUpti_Activity* record = nullptr;
  for (;;) {
    const CUptiResult rc = api.cuptiActivityGetNextRecord(data, valid, &record);
    if (rc == CUPTI_ERROR_MAX_LIMIT_REACHED) return;
    if (rc != CUPTI_SUCCESS) throw bad_file("the library cannot read it (" + std::to_string(rc) + ")");
    const auto* at = reinterpret_cast<const uint8_t*>(record);
    if (at < data || at + sizeof(CUpti_Activity) > data + valid) throw bad_file("a record outside of it");
    visit(record);
  }
}

}  // namespace

void detach_strings(const Api& api, uint8_t* data, size_t valid, std::vector<std::string>& strings) {
  std::unordered_map<std::string, uintptr_t> known;
  for (size_t i = 0; i < strings.size(); ++i) known.emplace(strings[i], i + 1);
  for_each_record(api, data, valid, [&](CUpti_Activity* record) {
    for_each_string(record, [&](const char** field) {
      const char* text;
      std::memcpy(&text, field, sizeof text);
      uintptr_t index = 0;
      if (text) {
        const auto [found, is_new] = known.try_emplace(text, strings.size() + 1);
        if (is_new) strings.emplace_back(text);
        index = found->second;
      }
      std::memcpy(field, &index, sizeof index);
    });
  });
}

std::unique_ptr<Store> decode_recorded(const Api& api, const std::vector<std::string>& buffers,
                                       const std::vector<std::string>& strings, Losses& losses) {
  CorrelationMap calls(1u << 20);
  RegionTracker regions(calls, losses);
  auto store = std::make_unique<Store>(Keep::kFirst, kTableBytes, losses, std::make_shared<PageWarmer>());
  RecordDecoder decoder(api, regions, calls, losses, {.filter = nullptr, .follows_launches = false});
  for (const std::string& recorded : buffers) {
    if (recorded.size() > kMaxBuffer) throw bad_file("larger than 64 MiB");
    std::vector<uint64_t> aligned((recorded.size() + kMargin) / sizeof(uint64_t) + 1);
    auto* data = reinterpret_cast<uint8_t*>(aligned.data());
    std::memcpy(data, recorded.data(), recorded.size());
    for_each_record(api, data, recorded.size(), [&](CUpti_Activity* record) {
      for_each_string(record, [&](const char** field) {
        uintptr_t index;
        std::memcpy(&index, field, sizeof index);
        if (index > strings.size()) throw bad_file("a string that is not there");
        const char* text = index ? strings[index - 1].c_str() : nullptr;
        std::memcpy(field, &text, sizeof text);
      });
    });
    decoder.decode(*store, data, recorded.size());
  }
  return store;
}

}  // namespace cuptiprof
