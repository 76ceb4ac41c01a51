// The record layout we rely on. Compiling this file is the test.
#include <cupti_activity.h>

#include <cstddef>

static_assert(offsetof(CUpti_ActivityKernel10, cacheConfig) == 4);
static_assert(offsetof(CUpti_ActivityKernel10, registersPerThread) == 6);
static_assert(offsetof(CUpti_ActivityKernel10, partitionedGlobalCacheRequested) == 8);
static_assert(offsetof(CUpti_ActivityKernel10, partitionedGlobalCacheExecuted) == 12);
static_assert(offsetof(CUpti_ActivityKernel10, start) == 16);
static_assert(offsetof(CUpti_ActivityKernel10, end) == 24);
static_assert(offsetof(CUpti_ActivityKernel10, deviceId) == 40);
static_assert(offsetof(CUpti_ActivityKernel10, streamId) == 48);
static_assert(offsetof(CUpti_ActivityKernel10, gridX) == 52);
static_assert(offsetof(CUpti_ActivityKernel10, blockX) == 64);
static_assert(offsetof(CUpti_ActivityKernel10, blockZ) == 72);
static_assert(offsetof(CUpti_ActivityKernel10, dynamicSharedMemory) == 80);
static_assert(offsetof(CUpti_ActivityKernel10, localMemoryTotal) == 88);
static_assert(offsetof(CUpti_ActivityKernel10, correlationId) == 92);
static_assert(offsetof(CUpti_ActivityKernel10, name) == 104);
static_assert(offsetof(CUpti_ActivityKernel10, queued) == 120);
static_assert(offsetof(CUpti_ActivityKernel10, launchType) == 136);
static_assert(offsetof(CUpti_ActivityKernel10, sharedMemoryExecuted) == 140);
static_assert(offsetof(CUpti_ActivityKernel10, graphNodeId) == 144);
static_assert(offsetof(CUpti_ActivityKernel10, shmemLimitConfig) == 152);
static_assert(offsetof(CUpti_ActivityKernel10, graphId) == 156);
static_assert(offsetof(CUpti_ActivityKernel10, channelID) == 168);
static_assert(offsetof(CUpti_ActivityKernel10, clusterX) == 176);
static_assert(offsetof(CUpti_ActivityKernel10, clusterSchedulingPolicy) == 188);
static_assert(offsetof(CUpti_ActivityKernel10, localMemoryTotal_v2) == 192);
static_assert(offsetof(CUpti_ActivityKernel10, maxActiveClusters) == 204);
static_assert(offsetof(CUpti_ActivityKernel10, isDeviceLaunched) == 208);
static_assert(offsetof(CUpti_ActivityMemcpy6, bytes) == 8);
static_assert(offsetof(CUpti_ActivityMemcpy6, start) == 16);
static_assert(offsetof(CUpti_ActivityMemcpy6, correlationId) == 44);
static_assert(offsetof(CUpti_ActivityMemcpy6, graphNodeId) == 64);
static_assert(sizeof(CUpti_ActivityAPI) == 40);
static_assert(sizeof(CUpti_ActivityExternalCorrelation) == 24);
static_assert(sizeof(CUpti_ActivityMarker2) == 56);
static_assert(sizeof(CUpti_ActivityOverhead3) == 56);
static_assert(sizeof(CUpti_ActivityGraphTrace2) == 56);
static_assert(sizeof(CUpti_ActivityMemcpyPtoP4) == 96);
static_assert(sizeof(CUpti_ActivityEnvironment) == 40);
static_assert(offsetof(CUpti_ActivityEnvironment, timestamp) == 8);
static_assert(offsetof(CUpti_ActivityEnvironment, data) == 20);
