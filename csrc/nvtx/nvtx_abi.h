// The binary interface between NVTX v3 and a tool (nvtxDetail/nvtxTypes.h and nvToolsExtPayload.h): what a
// copy of NVTX hands to the library that NVTX_INJECTION64_PATH names, and the structures that programs pass.
//
// NVTX is headers only: every library that uses it carries a copy, and each asks for a tool at its own first
// call.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cuptiprof::nvtx {

using Function = void (*)();

// GetExportTable(kCallbacks): which function pointers of a copy a tool may set.
inline constexpr uint32_t kCallbacksTable = 1;
struct CallbacksTable {
  size_t struct_size;
  // *table: pointers to the copy's function pointers by callback ID, *size: one more than the highest ID. 0:
  // the copy does not know this module.
  int (*get_module)(uint32_t module, Function*** table, unsigned* size);
};
using GetExportTable = const void* (*)(uint32_t table);

enum Module : uint32_t { kCore = 1, kCuda = 2, kCudaRuntime = 4, kCore2 = 5 };

// Callback IDs of each module.
enum CoreCall : uint32_t {
  kMarkEx = 1,
  kMarkA,
  kMarkW,
  kRangeStartEx,
  kRangeStartA,
  kRangeStartW,
  kRangeEnd,
  kRangePushEx,
  kRangePushA,
  kRangePushW,
  kRangePop,
  kNameCategoryA,
  kNameCategoryW,
  kNameOsThreadA,
  kNameOsThreadW,
};
enum Core2Call : uint32_t {
  kDomainMarkEx = 1,
  kDomainRangeStartEx,
  kDomainRangeEnd,
  kDomainRangePushEx,
  kDomainRangePop,
  kDomainResourceCreate,
  kDomainResourceDestroy,
  kDomainNameCategoryA,
  kDomainNameCategoryW,
  kDomainRegisterStringA,
  kDomainRegisterStringW,
  kDomainCreateA,
  kDomainCreateW,
  kDomainDestroy,
};
enum CudaCall : uint32_t { kNameCuDeviceA = 1, kNameCuDeviceW };
enum CudaRuntimeCall : uint32_t { kNameCudaDeviceA = 1, kNameCudaDeviceW };

// Handles are ours; null: the default domain, no string.
struct Domain;
struct String;

enum MessageType : int32_t { kAscii = 1, kWide = 2, kRegistered = 3 };
union Message {
  const char* ascii;
  const wchar_t* wide;
  const String* registered;
};

enum PayloadType : int32_t { kUint64 = 1, kInt64, kDouble, kUint32, kInt32, kFloat };
enum ColorType : int32_t { kArgb = 1 };

// nvtxEventAttributes_v2. A program says by `size` how much of it there is; longer ones are newer.
struct EventAttributes {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t reserved;
  union {
    uint64_t u64;
    int64_t i64;
    double f64;
    uint32_t u32;
    int32_t i32;
    float f32;
  } payload;
  int32_t message_type;
  Message message;
};
static_assert(sizeof(EventAttributes) == 48 && offsetof(EventAttributes, message) == 40);

// nvtxResourceAttributes_v0.
struct ResourceAttributes {
  uint16_t version;
  uint16_t size;
  int32_t type;  // ResourceType
  uint64_t identifier;
  int32_t message_type;
  Message message;
};
static_assert(sizeof(ResourceAttributes) == 32 && offsetof(ResourceAttributes, message) == 24);
enum ResourceType : int32_t {
  kNativeThread = 1 << 16 | 3,  // generic class: a thread by the system's ID
  kCudaDevice = 4 << 16 | 1,    // CUdevice
  kCudaRuntimeDevice = 5 << 16 | 0,
};

inline constexpr int kNoTracking = -2;  // NVTX_NO_PUSH_POP_TRACKING
inline constexpr int kNothingToPop = -1;

// Extensions: a copy asks for each once (InitializeInjectionNvtxExtension).
inline constexpr uint32_t kPayloadExtension = 2;
inline constexpr size_t kDomainIsEnabled = 7;  // its slot
struct ExtensionSegment {
  size_t id;
  size_t slots;
  intptr_t* functions;
};
struct ExtensionModule {
  uint16_t version;
  uint16_t size;
  uint16_t module;
  uint16_t compatible;
  size_t segments_count;
  ExtensionSegment* segments;
};

}  // namespace cuptiprof::nvtx
