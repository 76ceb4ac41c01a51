// What the arguments of a kernel launch say, from a driver callback.
#pragma once
#include <cuda.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>

#include <array>
#include <cstdint>

namespace cuptiprof {

struct LaunchParams {
  std::array<int32_t, 3> grid{}, block{};
  uint32_t dynamic_shared_memory = 0;
  CUstream stream = nullptr;
  bool known = false;  // false: a launch call of another form
};

namespace detail {
// cuLaunchKernel_params and cuLaunchKernelEx_params of generated_cuda_meta.h, which cannot be included
// without the rest of CUDA's headers. All forms of the call begin like this.
struct LaunchArguments {
  CUfunction f;
  unsigned grid[3], block[3];
  unsigned shared;
  CUstream stream;
};
struct LaunchExArguments {
  const CUlaunchConfig* config;
};
struct LaunchMultiDeviceArguments {
  const void* list;
  unsigned devices;
};
}  // namespace detail

// How many kernels a launch call launches: one, and a cooperative one over several devices one on each.
inline uint64_t kernels_launched(CUpti_CallbackId cbid, const void* arguments) noexcept {
  if (cbid != CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice || !arguments) [[likely]]
    return 1;
  return static_cast<const detail::LaunchMultiDeviceArguments*>(arguments)->devices;
}

inline LaunchParams launch_params(CUpti_CallbackId cbid, const void* arguments) noexcept {
  LaunchParams p;
  if (!arguments) return p;
  auto fill = [&](const unsigned* grid, const unsigned* block) {
    for (size_t i = 0; i < 3; ++i) {
      p.grid[i] = static_cast<int32_t>(grid[i]);
      p.block[i] = static_cast<int32_t>(block[i]);
    }
    p.known = true;
  };
  switch (cbid) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz: {
      const auto& a = *static_cast<const detail::LaunchArguments*>(arguments);
      fill(a.grid, a.block);
      p.dynamic_shared_memory = a.shared;
      p.stream = a.stream;
      return p;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz: {
      const CUlaunchConfig* c = static_cast<const detail::LaunchExArguments*>(arguments)->config;
      if (!c) return p;
      const unsigned grid[3] = {c->gridDimX, c->gridDimY, c->gridDimZ};
      const unsigned block[3] = {c->blockDimX, c->blockDimY, c->blockDimZ};
      fill(grid, block);
      p.dynamic_shared_memory = c->sharedMemBytes;
      p.stream = c->hStream;
      return p;
    }
    default:
      return p;
  }
}

}  // namespace cuptiprof
