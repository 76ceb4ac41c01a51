#include "sim/machine/faults.h"

#include <chrono>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <thread>
#include <vector>

#include "sim/cuptisim.h"

namespace sim {

std::atomic<bool> g_any_fault{false};

namespace {

std::mutex g_faults_mutex;  // guards the list
std::vector<std::shared_ptr<const Fault>>& faults() {
  static auto* list = new std::vector<std::shared_ptr<const Fault>>;  // never destroyed (Machine::get)
  return *list;
}

}  // namespace

void inject(int kind, const char* name, uint64_t a, uint64_t b, uint64_t c) {
  auto f = std::make_shared<Fault>();
  f->kind = kind;
  f->name = name ? name : "";
  f->a = a, f->b = b, f->c = c;
  const std::lock_guard lock(g_faults_mutex);
  faults().push_back(std::move(f));
  g_any_fault = true;
}

void clear_faults() {
  const std::lock_guard lock(g_faults_mutex);
  g_any_fault = false;
  faults().clear();
}

std::shared_ptr<const Fault> fault(int kind) {
  if (!any_fault()) return nullptr;
  const std::lock_guard lock(g_faults_mutex);
  for (const auto& f : faults())
    if (f->kind == kind) return f;
  return nullptr;
}

std::shared_ptr<const Fault> strikes(int kind) {
  if (!any_fault()) return nullptr;
  const std::lock_guard lock(g_faults_mutex);
  for (const auto& f : faults())
    if (f->kind == kind && f->a != 0 && (f->seen.fetch_add(1) + 1) % f->a == 0) return f;
  return nullptr;
}

bool missing_metric(const std::string& base) {
  const std::lock_guard lock(g_faults_mutex);
  for (const auto& f : faults())
    if (f->kind == CUPTISIM_FAULT_MISSING_METRIC && f->name == base) return true;
  return false;
}

std::vector<std::string> names_of(int kind) {
  std::vector<std::string> out;
  if (!any_fault()) return out;
  const std::lock_guard lock(g_faults_mutex);
  for (const auto& f : faults())
    if (f->kind == kind) out.push_back(f->name);
  return out;
}

namespace {

std::shared_ptr<const Fault> fault_named(int kind, const char* name) {
  const std::lock_guard lock(g_faults_mutex);
  for (const auto& f : faults())
    if (f->kind == kind && f->name == name) return f;
  return nullptr;
}

// Real time, also where the machine's clock is virtual.
void compute_for(uint64_t ns) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(ns);
  if (ns > 1'000'000) return std::this_thread::sleep_until(end);
  while (std::chrono::steady_clock::now() < end) {  // a sleep would take a twentieth of a millisecond more
  }
}

}  // namespace

void take_time(const char* function) {
  if (!any_fault()) return;
  if (const auto f = fault_named(CUPTISIM_FAULT_CALL_TIME, function)) compute_for(f->a);
}

void take_time(const char* function, size_t ranges) {
  if (!any_fault()) return;
  if (const auto f = fault_named(CUPTISIM_FAULT_CALL_TIME, function)) compute_for(f->b * ranges);
}

CUptiResult failure(const char* function) {
  const auto is_one_of = [function](std::initializer_list<const char*> names) {
    for (const char* n : names)
      if (std::strcmp(function, n) == 0) return true;
    return false;
  };
  const bool counters =
      is_one_of({"cuptiRangeProfilerEnable", "cuptiPmSamplingEnable", "cuptiProfilerGetCounterAvailability",
                 "cuptiPmSamplingGetCounterAvailability"});
  const bool privileged =
      counters || is_one_of({"cuptiSubscribe", "cuptiSubscribe_v2", "cuptiActivityEnable"});
  const std::lock_guard lock(g_faults_mutex);
  // Newest setting of a switch wins, so that a: 0 takes a: 1 back.
  const auto setting = [](int kind) {
    uint64_t a = 0;
    for (const auto& f : faults())
      if (f->kind == kind) a = f->a;
    return a;
  };
  for (const auto& f : faults()) {
    if (privileged && f->kind == CUPTISIM_FAULT_NO_PRIVILEGES && setting(f->kind))
      return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    if (counters && f->kind == CUPTISIM_FAULT_COUNTERS_BUSY && setting(f->kind))
      return CUPTI_ERROR_HARDWARE_BUSY;
    if (counters && f->kind == CUPTISIM_FAULT_NO_COUNTERS && setting(f->kind))
      return static_cast<CUptiResult>(setting(f->kind));
    if (f->kind == CUPTISIM_FAULT_OTHER_SUBSCRIBER && std::strcmp(function, "cuptiSubscribe") == 0)
      return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    if (f->kind != CUPTISIM_FAULT_FAIL_CALL || f->name != function) continue;
    const uint64_t call = f->seen.fetch_add(1);
    if (call >= f->b && (f->c == 0 || call < f->b + f->c)) return static_cast<CUptiResult>(f->a);
  }
  return CUPTI_SUCCESS;
}

}  // namespace sim
