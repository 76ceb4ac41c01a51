// CUPTI's calls for one subscriber of several (CUDA 13.3, driver r610), by hand: the headers that this is
// built with end before them. Signatures as in cupti_callbacks.h and cupti_activity.h of 13.5; what they
// point at and we leave out (CUpti_ActivityConfig, information about buffers) is void.
#pragma once
#include <cupti_activity.h>
#include <cupti_callbacks.h>

namespace cuptiprof {

// X(name, arguments): without one of these a session is the only subscriber.
#define CP_OF_SUBSCRIBER(X)                                                                          \
  X(cuptiActivityEnable_v2, (CUpti_SubscriberHandle, CUpti_ActivityKind, void* config))              \
  X(cuptiActivityEnableAndDump_v2, (CUpti_SubscriberHandle, CUpti_ActivityKind, void* config))       \
  X(cuptiActivityDisable_v2, (CUpti_SubscriberHandle, CUpti_ActivityKind, void* config))             \
  X(cuptiActivityRegisterCallbacks_v2,                                                               \
    (CUpti_SubscriberHandle, BufferRequestFunction, BufferCompleteFunction))                         \
  X(cuptiActivityGetAttribute_v2, (CUpti_SubscriberHandle, CUpti_ActivityAttribute, size_t*, void*)) \
  X(cuptiActivitySetAttribute_v2, (CUpti_SubscriberHandle, CUpti_ActivityAttribute, size_t*, void*)) \
  X(cuptiActivityGetNextRecord_v2, (CUpti_SubscriberHandle, uint8_t*, size_t, CUpti_Activity**))     \
  X(cuptiActivityGetNumDroppedRecords_v2, (CUpti_SubscriberHandle, CUcontext, uint32_t, size_t*))    \
  X(cuptiActivityEnableRuntimeApi_v2, (CUpti_SubscriberHandle, CUpti_CallbackId, uint8_t))           \
  X(cuptiActivityEnableDriverApi_v2, (CUpti_SubscriberHandle, CUpti_CallbackId, uint8_t))            \
  X(cuptiGetTimestamp_v2, (CUpti_SubscriberHandle, uint64_t*))

struct SubscriberApi {
  using BufferRequestFunction = void(CUPTIAPI*)(uint8_t** buffer, size_t* size, size_t* max_records,
                                                void* info);
  using BufferCompleteFunction = void(CUPTIAPI*)(uint8_t* buffer, size_t size, size_t valid, void* info);

#define CP_MEMBER(name, arguments) CUptiResult(CUPTIAPI* name) arguments = nullptr;
  CP_OF_SUBSCRIBER(CP_MEMBER)
#undef CP_MEMBER

  bool complete() const noexcept {
#define CP_THERE(name, arguments) &&name != nullptr
    return true CP_OF_SUBSCRIBER(CP_THERE);
#undef CP_THERE
  }
};

// CUpti_SubscriberParams from 13.3 on.
struct SharingParams {
  size_t size = sizeof(SharingParams);
  const char* name = nullptr;
  char* holder = nullptr;
  size_t holder_bytes = 0;
  uint8_t allow_multiple = 0;
  uint8_t padding[7] = {};
};
static_assert(sizeof(SharingParams) == 40);

// CUpti_ActivityAttribute from 13.3 on.
inline constexpr auto kAttributeSubscriberState = static_cast<CUpti_ActivityAttribute>(12);
inline constexpr auto kAttributeLatencyTimestamps = static_cast<CUpti_ActivityAttribute>(15);
inline constexpr auto kAttributeThreadIdType = static_cast<CUpti_ActivityAttribute>(21);
inline constexpr auto kAttributeTimestampCallback = static_cast<CUpti_ActivityAttribute>(22);

}  // namespace cuptiprof
