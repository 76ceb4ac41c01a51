// What a copy of NVTX calls at its first use, having loaded this library by NVTX_INJECTION64_PATH: it is
// given our handlers. Nothing of Python, CUDA or CUPTI is needed here.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "nvtx/events.h"
#include "nvtx/link.h"
#include "nvtx/listening.h"
#include "nvtx/naming.h"
#include "nvtx/nvtx_abi.h"
#include "nvtx/registry.h"

namespace cuptiprof::nvtx {
namespace {

constexpr size_t kMaxCopies = 256;  // beyond, they work and are not listed
std::atomic<const void*> g_copies[kMaxCopies];
std::atomic<size_t> g_copy_count{0};

class Functions {
 public:
  Functions(const CallbacksTable& callbacks, Module module) noexcept {
    if (!callbacks.get_module(module, &x_table, &x_size) || !x_table) x_size = 0;
  }
  // Left out where the copy is older than the call.
  template <typename Handler>
  void set(uint32_t call, Handler* handler) noexcept {
    if (call < x_size && x_table[call]) *x_table[call] = reinterpret_cast<Function>(handler);
  }

 private:
  Function** x_table = nullptr;
  unsigned x_size = 0;
};

void set_core(Functions to) noexcept {
  to.set(kMarkEx, +[](const EventAttributes* said) { mark_ex(nullptr, said); });
  to.set(kMarkA, &mark_text);
  to.set(kMarkW, &mark_wide);
  to.set(kRangeStartEx, +[](const EventAttributes* said) { return start_ex(nullptr, said); });
  to.set(kRangeStartA, &start_text);
  to.set(kRangeStartW, &start_wide);
  to.set(kRangeEnd, &end);
  to.set(kRangePushEx, +[](const EventAttributes* said) { return push_ex(nullptr, said); });
  to.set(kRangePushA, &push_text);
  to.set(kRangePushW, &push_wide);
  to.set(kRangePop, +[] { return pop(nullptr); });
  to.set(kNameCategoryA, &name_category_default<char>);
  to.set(kNameCategoryW, &name_category_default<wchar_t>);
  to.set(kNameOsThreadA, &name_one<Named::kThread, uint32_t, char>);
  to.set(kNameOsThreadW, &name_one<Named::kThread, uint32_t, wchar_t>);
}

void set_domains(Functions to) noexcept {
  to.set(kDomainMarkEx, &mark_ex);
  to.set(kDomainRangeStartEx, &start_ex);
  to.set(kDomainRangeEnd, +[](const Domain*, uint64_t range) { end(range); });
  to.set(kDomainRangePushEx, &push_ex);
  to.set(kDomainRangePop, &pop);
  to.set(kDomainResourceCreate, &create_resource);
  to.set(kDomainResourceDestroy, +[](const void*) {});
  to.set(kDomainNameCategoryA, &name_category_of<char>);
  to.set(kDomainNameCategoryW, &name_category_of<wchar_t>);
  to.set(kDomainRegisterStringA, &register_string);
  to.set(kDomainRegisterStringW, &register_string_wide);
  to.set(kDomainCreateA, &create_domain);
  to.set(kDomainCreateW, &create_domain_wide);
  to.set(kDomainDestroy, +[](const Domain*) {});
}

void set_cuda(Functions driver, Functions runtime) noexcept {
  driver.set(kNameCuDeviceA, &name_one<Named::kDevice, int, char>);
  driver.set(kNameCuDeviceW, &name_one<Named::kDevice, int, wchar_t>);
  runtime.set(kNameCudaDeviceA, &name_one<Named::kDevice, int, char>);
  runtime.set(kNameCudaDeviceW, &name_one<Named::kDevice, int, wchar_t>);
}

size_t copies() noexcept { return std::min(g_copy_count.load(std::memory_order_acquire), kMaxCopies); }

const Link g_link = {
    .version = kLinkVersion,
    .listen = [](const Listener* to) { g_listener.store(to, std::memory_order_release); },
    .copies = [] { return copies(); },
    .copy = [](size_t i) { return i < copies() ? g_copies[i].load(std::memory_order_relaxed) : nullptr; },
    .category_name = &category_name,
    .names = &visit_names,
    .lost = &texts_lost,
};

}  // namespace
}  // namespace cuptiprof::nvtx

extern "C" {

[[gnu::visibility("default")]] int InitializeInjectionNvtx2(cuptiprof::nvtx::GetExportTable get_table) {
  using namespace cuptiprof::nvtx;
  const auto* callbacks =
      get_table ? static_cast<const CallbacksTable*>(get_table(kCallbacksTable)) : nullptr;
  if (!callbacks || callbacks->struct_size < sizeof(CallbacksTable) || !callbacks->get_module) return 0;
  set_core({*callbacks, kCore});
  set_domains({*callbacks, kCore2});
  set_cuda({*callbacks, kCuda}, {*callbacks, kCudaRuntime});
  const size_t i = g_copy_count.fetch_add(1, std::memory_order_acq_rel);
  if (i < kMaxCopies) g_copies[i].store(reinterpret_cast<const void*>(get_table), std::memory_order_release);
  return 1;
}

// Of extensions only one question matters: whether a domain is enabled, for the Python package drops every
// call of one that is not. Without our answer newer copies say no.
[[gnu::visibility("default")]] int InitializeInjectionNvtxExtension(
    cuptiprof::nvtx::ExtensionModule* module) {
  using namespace cuptiprof::nvtx;
  if (!module || module->size < sizeof(ExtensionModule)) return 0;
  if (module->module != kPayloadExtension || module->segments_count == 0 || !module->segments) return 1;
  const ExtensionSegment& slots = module->segments[0];
  if (slots.slots > kDomainIsEnabled && slots.functions)
    slots.functions[kDomainIsEnabled] =
        reinterpret_cast<intptr_t>(+[](const Domain*) -> uint8_t { return 1; });
  return 1;
}

[[gnu::visibility("default")]] const cuptiprof::nvtx::Link* cuptiprof_nvtx_link() {
  return &cuptiprof::nvtx::g_link;
}

}  // extern "C"
