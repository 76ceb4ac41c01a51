#include "sim/counters/counter_model.h"

#include <algorithm>
#include <cmath>

#include "sim/counters/metric_eval.h"
#include "sim/machine/inside.h"
#include "sim/machine/work.h"

namespace sim {
namespace {

std::mutex g_given_mutex;  // guards g_given
std::shared_ptr<const GivenCounters> g_given = std::make_shared<GivenCounters>();

std::shared_ptr<const GivenCounters> given_now() {
  const std::lock_guard lock(g_given_mutex);
  return g_given;
}

uint64_t mixed(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

bool follows_sm(Unit u) {
  return u == Unit::kSm || u == Unit::kSmsp || u == Unit::kL1tex || u == Unit::kTpc || u == Unit::kGpc;
}

}  // namespace

bool give_counter(const char* kernel, const char* counter, double sum) {
  if (!counter || !std::isfinite(sum) || sum < 0) return false;
  const RawId id = raw_named(counter);
  if (id == kNoRaw || raws()[id].kind == Raw::Kind::kElapsed || raws()[id].kind == Raw::Kind::kTime)
    return false;
  const std::lock_guard lock(g_given_mutex);
  auto changed = std::make_shared<GivenCounters>(*g_given);
  (*changed)[kernel ? kernel : ""][id] = sum;
  g_given = std::move(changed);
  return true;
}

void clear_given_counters() {
  const std::lock_guard lock(g_given_mutex);
  g_given = std::make_shared<GivenCounters>();
}

double elapsed_value(const Raw& raw, double ns, const Chip& chip) {
  if (raw.kind == Raw::Kind::kTime) return ns;
  return instances(raw.unit, chip) * clock_of(raw.unit, chip) * ns;
}

KernelCounters::KernelCounters(const cuptisim_op& op, double duration_ns, const Chip& chip)
    : x_given(given_now()), x_duration(duration_ns), x_chip(chip) {
  const std::string_view name = op.name ? op.name : "";
  if (!x_given->empty()) {
    if (const auto at = x_given->find(name); at != x_given->end() && !name.empty()) x_mine = &at->second;
    if (const auto at = x_given->find(""); at != x_given->end()) x_everybodys = &at->second;
  }
  x_registers = op.registers_per_thread ? op.registers_per_thread : 32;
  x_shared = std::max(op.static_shared_memory, 0) + std::max(op.dynamic_shared_memory, 0);
  x_seed = text_hash(name);
  const auto add = [&](double v) { x_seed = mixed(x_seed ^ static_cast<uint64_t>(v)); };
  x_blocks = x_threads_per_block = 1;
  for (int i = 0; i < 3; ++i) {
    x_blocks *= std::max(op.grid[i], 1);
    x_threads_per_block *= std::max(op.block[i], 1);
    add(std::max(op.grid[i], 1));
    add(std::max(op.block[i], 1));
  }
  add(op.registers_per_thread);
  add(std::max(op.static_shared_memory, 0));
  add(std::max(op.dynamic_shared_memory, 0));
  add(duration_ns);
  x_seed = mixed(x_seed ^ text_hash(chip.name));
}

double KernelCounters::fraction(uint64_t word) const {
  return 0.1 + 0.8 * static_cast<double>(mixed(x_seed ^ word) >> 11) / 9007199254740992.0;
}

const double* KernelCounters::given(RawId id) const {
  for (const auto* values : {x_mine, x_everybodys}) {
    if (!values) continue;
    if (const auto at = values->find(id); at != values->end()) return &at->second;
  }
  return nullptr;
}

double KernelCounters::active(Unit unit) const {
  // All of an SM's parts are active while it has a warp.
  if (follows_sm(unit) && unit != Unit::kSm)
    return value(active_cycles(Unit::kSm)) * instances(unit, x_chip) / instances(Unit::kSm, x_chip);
  const double most = elapsed_value(raws()[elapsed_cycles(unit)], x_duration, x_chip);
  return std::floor((0.5 + 0.5 * fraction(text_hash(unit == Unit::kSm ? "sm active" : "active"))) * most);
}

// Warps that registers, shared memory, threads and the number of blocks let one SM hold.
double KernelCounters::most_warps() const {
  const double warps = std::ceil(x_threads_per_block / 32);
  const double per_block_registers = std::ceil(x_registers * 32 / 256) * 256 * warps;
  double blocks = std::min<double>(x_chip.blocks_per_sm, std::floor(x_chip.warps_per_sm / warps));
  blocks = std::min(blocks, std::floor(65536 / per_block_registers));
  blocks = std::min(blocks, std::floor(x_chip.shared_per_sm / (x_shared + 1024)));
  blocks = std::min(blocks, std::ceil(x_blocks / x_chip.sms));
  return std::max(blocks, 1.0) * warps;
}

double KernelCounters::usual(const Raw& raw) const {
  if (raw.name == "sm__warps_active")
    return std::floor((0.6 + 0.4 * fraction(raw.hash)) * most_warps() * value(active_cycles(Unit::kSm)));
  if (raw.sectors != kNoRaw) return 32 * value(raw.sectors);
  if (raw.parent != kNoRaw && raw.rest != kNoRaw) return value(raw.parent) - value(raw.rest);
  if (raw.parent != kNoRaw) return std::floor(raw.scale * fraction(raw.hash) * value(raw.parent));
  if (raw.name.ends_with("__ctas_launched")) return x_blocks;
  if (raw.name.ends_with("__warps_launched")) return x_blocks * std::ceil(x_threads_per_block / 32);
  if (raw.name.ends_with("__threads_launched")) return x_blocks * x_threads_per_block;
  const double peak = peak_per_cycle(raw.unit, raw.dimension, raw.name, x_chip);
  return std::floor(fraction(raw.hash) * peak * value(active_cycles(raw.unit)));
}

double KernelCounters::value(RawId id) const {
  if (const double* v = given(id)) return *v;
  const Raw& raw = raws()[id];
  if (raw.alias != kNoRaw) return value(raw.alias);
  switch (raw.kind) {
    case Raw::Kind::kElapsed:
    case Raw::Kind::kTime:
      return elapsed_value(raw, x_duration, x_chip);
    case Raw::Kind::kActive:
      return active(raw.unit);
    default:
      return usual(raw);
  }
}

}  // namespace sim

using namespace sim;

SIM_EXPORT int cuptisim_set_counter(const char* kernel_name, const char* base_metric, double sum) {
  return give_counter(kernel_name, base_metric, sum) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_EXPORT void cuptisim_clear_counters() { clear_given_counters(); }

SIM_EXPORT int cuptisim_true_metric(const cuptisim_op* op, const char* metric, double* value) {
  const Inside inside;
  if (!op || op->size != sizeof *op || !metric || !value) return CUDA_ERROR_INVALID_VALUE;
  const Chip& chip = Machine::get().chip();
  const auto ref = find_metric(metric, cupti_chip_of(chip), Profiler::kRange);
  const auto sampled = ref ? ref : find_metric(metric, cupti_chip_of(chip), Profiler::kSampling);
  if (!sampled || !sampled->complete) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t duration = op->flags & CUPTISIM_GPU_TIMES ? op->gpu_end - op->gpu_start
                            : op->duration_ns              ? op->duration_ns
                                                           : kUsualDuration;
  const KernelCounters counters(*op, static_cast<double>(duration), chip);
  *value = evaluate(*sampled, chip, [&](RawId id) { return counters.value(id); });
  return CUDA_SUCCESS;
}
