#include "collect/records/known_resources.h"

#include "cupti/api.h"

namespace cuptiprof {

void KnownResources::add_missing_devices(const Api& api, Store& store) {
  int count = 0;
  if (!api.cuDeviceGetCount || !api.cuDeviceGetAttribute || api.cuDeviceGetCount(&count) != CUDA_SUCCESS)
    return;
  for (int device = 0; device < count; ++device) {
    if (!is_new_device(static_cast<uint32_t>(device))) continue;
    // What the driver does not know stays 0.
    const auto value = [&](CUdevice_attribute attribute) {
      int v = 0;
      return api.cuDeviceGetAttribute(&v, attribute, device) == CUDA_SUCCESS && v > 0
                 ? static_cast<uint32_t>(v)
                 : 0u;
    };
    rows::devices row;
    row.device = static_cast<uint32_t>(device);
    char name[256] = "";
    if (api.cuDeviceGetName && api.cuDeviceGetName(name, sizeof name, device) == CUDA_SUCCESS)
      row.name = store.strings().intern(name);
    size_t bytes = 0;
    if (api.cuDeviceTotalMem_v2 && api.cuDeviceTotalMem_v2(&bytes, device) == CUDA_SUCCESS)
      row.global_memory_size = bytes;
    row.compute_capability_major = value(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    row.compute_capability_minor = value(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    row.num_multiprocessors = value(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    row.threads_per_warp = value(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    row.max_threads_per_block = value(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    const uint32_t threads = value(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    row.max_warps_per_multiprocessor = row.threads_per_warp ? threads / row.threads_per_warp : 0;
    row.max_blocks_per_multiprocessor = value(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    row.max_registers_per_multiprocessor = value(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    row.max_registers_per_block = value(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    row.max_shared_memory_per_multiprocessor =
        value(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    row.max_shared_memory_per_block = value(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    row.max_block_dim_x = value(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
    row.max_block_dim_y = value(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
    row.max_block_dim_z = value(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
    row.max_grid_dim_x = value(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
    row.max_grid_dim_y = value(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
    row.max_grid_dim_z = value(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
    row.core_clock_rate = value(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    row.num_memcpy_engines = value(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
    row.l2_cache_size = value(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    row.constant_memory_size = value(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    // Both edges of the memory clock: kHz * bits / 8 * 2 is kB/s.
    row.global_memory_bandwidth = uint64_t{value(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)} *
                                  value(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 4;
    row.ecc_enabled = value(CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
    store.append(row);
  }
}

}  // namespace cuptiprof
