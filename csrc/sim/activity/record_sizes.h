// Sizes of activity records as each emulated libcupti writes them. Offsets are the same everywhere; what
// differs is how far one record is from the next.
#pragma once
#include <cupti_activity.h>

#include <cstddef>
#include <cstdint>

namespace sim {

// Rows by CUpti_ActivityKind. Measured with cuptiActivityGetNextRecord of NVIDIA's 12.6, 12.9, 13.0 and 13.1;
// 0: a kind which that library does not know.
struct Strides {
  uint16_t v126, v128, v130, v131;
};
inline constexpr Strides kStrides[] = {
    {0, 0, 0, 0},         {88, 96, 96, 96},     {88, 88, 88, 88}, {208, 208, 216, 224}, {40, 40, 40, 40},
    {40, 40, 40, 40},     {24, 24, 0, 0},       {24, 24, 0, 0},   {184, 184, 184, 184}, {32, 32, 32, 40},
    {208, 208, 216, 224}, {32, 32, 32, 32},     {56, 56, 56, 56}, {32, 32, 40, 40},     {24, 24, 0, 0},
    {56, 56, 0, 0},       {40, 40, 0, 0},       {56, 56, 56, 56}, {144, 144, 144, 144}, {40, 40, 40, 40},
    {40, 40, 40, 40},     {32, 32, 0, 0},       {96, 96, 96, 96}, {32, 32, 0, 0},       {48, 48, 0, 0},
    {64, 104, 104, 104},  {32, 32, 32, 32},     {24, 24, 24, 24}, {24, 24, 24, 24},     {56, 56, 0, 0},
    {40, 40, 0, 0},       {32, 32, 0, 0},       {24, 24, 0, 0},   {152, 152, 152, 152}, {152, 152, 152, 152},
    {120, 120, 120, 120}, {24, 56, 56, 56},     {24, 24, 24, 24}, {40, 56, 56, 56},     {24, 24, 24, 24},
    {136, 136, 136, 136}, {32, 32, 0, 0},       {32, 32, 0, 0},   {32, 32, 0, 0},       {32, 32, 0, 0},
    {80, 80, 80, 80},     {168, 168, 168, 168}, {40, 40, 40, 40}, {40, 40, 40, 40},     {128, 128, 128, 128},
    {72, 72, 80, 80},     {56, 56, 56, 56},     {72, 72, 72, 72}, {0, 56, 56, 56},      {0, 64, 64, 64},
    {0, 32, 32, 32},      {0, 0, 0, 56},        {0, 0, 0, 24},    {0, 0, 0, 48},
};
inline constexpr size_t kKinds = sizeof kStrides / sizeof kStrides[0];

// Bytes from one record of this kind to the next; 0: there are none. What 13.3 and 13.4 changed are the sizes
// of the structs in 13.5's headers: those libraries answer nothing without a driver.
inline size_t stride(uint32_t kind, uint32_t version) {
  if (kind >= kKinds) return 0;
  const bool kernel = kind == CUPTI_ACTIVITY_KIND_KERNEL || kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  if (version >= 130400) {
    if (kernel) return 248;
    if (kind == CUPTI_ACTIVITY_KIND_MEMCPY) return 112;
    if (kind == CUPTI_ACTIVITY_KIND_MEMSET) return 104;
  }
  if (version >= 130300 && kernel) return 232;
  const Strides& s = kStrides[kind];
  return version >= 130100 ? s.v131 : version >= 130000 ? s.v130 : version >= 120800 ? s.v128 : s.v126;
}

// What cuptiGetVersion says for an emulated CUDA version.
inline uint32_t api_version(uint32_t version) {
  if (version >= 130000) return version;
  return version >= 120900 ? 27 : version >= 120800 ? 26 : 24;
}

// How many callback IDs the emulated library knows (CUPTI_*_TRACE_CBID_SIZE of its headers).
inline uint32_t runtime_cbids(uint32_t version) {
  return version >= 130400 ? 566 : version >= 130100 ? 550 : version >= 130000 ? 523 : 480;
}
inline uint32_t driver_cbids(uint32_t version) {
  return version >= 130400 ? 868 : version >= 130100 ? 846 : version >= 130000 ? 807 : 763;
}

}  // namespace sim
