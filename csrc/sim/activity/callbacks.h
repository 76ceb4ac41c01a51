// Subscribers and their callbacks, which come on the thread that makes the CUDA call, with no lock of ours
// held: they may call the library again.
#pragma once
#include <cupti_callbacks.h>

#include <cstdint>

namespace sim {

bool subscribed();
bool callback_enabled(CUpti_CallbackDomain domain, CUpti_CallbackId cbid);
// Every subscriber that enabled it.
void call_back(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data);
// A callback of the resource domain.
void resource_callback(CUpti_CallbackId cbid, CUcontext context, CUstream stream = nullptr,
                       void* descriptor = nullptr);
void disable_callbacks(uint32_t client);
// The only one.
void drop_subscriber();

}  // namespace sim
