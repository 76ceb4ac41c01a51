// Callback IDs and arguments of CUDA calls: what a profiler sees of one in a callback.
#pragma once
#include <cupti_callbacks.h>

#include "sim/activity/records.h"

namespace sim {

struct CallIds {
  CUpti_CallbackId runtime, driver;  // 0: no such call
};
// The call that an op makes: the one it names, or the usual one; and, under a runtime call, the driver call
// it ends in.
CallIds ids_of(const cuptisim_op& op);

// What CUpti_CallbackData::functionParams points at (generated_cuda_meta.h,
// generated_cuda_runtime_api_meta.h: not to be included without CUDA's other headers). Launches only: what
// else a profiler reads is not there.
class CallArguments {
 public:
  CallArguments(const Call& call, Api api, CUpti_CallbackId cbid);
  CallArguments(const CallArguments&) = delete;
  const void* get() const { return x_used; }

 private:
  struct Dim3 {
    unsigned x, y, z;
  };
  struct DriverLaunch {  // cuLaunchKernel_params; cooperative ones end before `extra`
    CUfunction f;
    Dim3 grid, block;
    unsigned sharedMemBytes;
    CUstream hStream;
    void** kernelParams;
    void** extra;
  };
  struct DriverLaunchEx {  // cuLaunchKernelEx_params
    const CUlaunchConfig* config;
    CUfunction f;
    void** kernelParams;
    void** extra;
  };
  struct RuntimeLaunch {  // cudaLaunchKernel_v7000_params
    const void* func;
    Dim3 grid, block;
    void** args;
    size_t sharedMem;
    CUstream stream;
  };
  struct RuntimeConfig {  // cudaLaunchConfig_t
    Dim3 grid, block;
    size_t dynamicSmemBytes;
    CUstream stream;
    void* attrs;
    unsigned numAttrs;
  };
  struct RuntimeLaunchEx {  // cudaLaunchKernelExC_v11060_params
    const RuntimeConfig* config;
    const void* func;
    void** args;
  };
  struct DriverLaunchMultiDevice {  // cuLaunchCooperativeKernelMultiDevice_params
    void* list;
    unsigned devices, flags;
  };
  // cuGraphLaunch_params, cudaGraphLaunch_v10000_params; cuGraphExecUpdate_v2_params begins like it.
  struct GraphLaunch {
    CUgraphExec executable;
    CUstream stream;
  };
  struct Capture {  // cuStreamBeginCapture_v2_params; cuStreamEndCapture_params begins like it
    CUstream stream;
    uint32_t mode;
  };

  union {
    DriverLaunch x_driver;
    DriverLaunchMultiDevice x_driver_multi;
    DriverLaunchEx x_driver_ex;
    RuntimeLaunch x_runtime;
    RuntimeLaunchEx x_runtime_ex;
    GraphLaunch x_graph;
    Capture x_capture;
  };
  CUlaunchConfig x_config;
  RuntimeConfig x_runtime_config;
  const void* x_used = nullptr;
};

}  // namespace sim
