#include "faults.h"

#include <cstring>
#include <mutex>
#include <vector>

#include "cuptisim.h"

namespace sim {

std::atomic<bool> g_any_fault{false};

namespace {

std::mutex g_mutex;  // guards the list
std::vector<std::shared_ptr<const Fault>>& faults() {
  static auto* list = new std::vector<std::shared_ptr<const Fault>>;
  return *list;
}

}  // namespace

void inject(int kind, const char* name, uint64_t a, uint64_t b, uint64_t c) {
  auto f = std::make_shared<Fault>();
  f->kind = kind;
  f->name = name ? name : "";
  f->a = a, f->b = b, f->c = c;
  const std::lock_guard lock(g_mutex);
  faults().push_back(std::move(f));
  g_any_fault = true;
}

void clear_faults() {
  const std::lock_guard lock(g_mutex);
  g_any_fault = false;
  faults().clear();
}

std::shared_ptr<const Fault> fault(int kind) {
  if (!any_fault()) return nullptr;
  const std::lock_guard lock(g_mutex);
  for (const auto& f : faults())
    if (f->kind == kind) return f;
  return nullptr;
}

std::shared_ptr<const Fault> strikes(int kind) {
  if (!any_fault()) return nullptr;
  const std::lock_guard lock(g_mutex);
  for (const auto& f : faults())
    if (f->kind == kind && f->a != 0 && (f->seen.fetch_add(1) + 1) % f->a == 0) return f;
  return nullptr;
}

CUptiResult failure(const char* function) {
  const bool subscribe =
      std::strcmp(function, "cuptiSubscribe") == 0 || std::strcmp(function, "cuptiSubscribe_v2") == 0;
  const std::lock_guard lock(g_mutex);
  for (const auto& f : faults()) {
    // Newest setting of the switch wins, so that a: 0 takes a: 1 back.
    if (f->kind == CUPTISIM_FAULT_NO_PRIVILEGES) {
      bool on = false;
      for (const auto& g : faults())
        if (g->kind == f->kind) on = g->a != 0;
      if (on && (subscribe || std::strcmp(function, "cuptiActivityEnable") == 0))
        return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    }
    if (f->kind == CUPTISIM_FAULT_OTHER_SUBSCRIBER && std::strcmp(function, "cuptiSubscribe") == 0)
      return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    if (f->kind != CUPTISIM_FAULT_FAIL_CALL || f->name != function) continue;
    const uint64_t call = f->seen.fetch_add(1);
    if (call >= f->b && (f->c == 0 || call < f->b + f->c)) return static_cast<CUptiResult>(f->a);
  }
  return CUPTI_SUCCESS;
}

}  // namespace sim
