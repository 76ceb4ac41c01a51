// What the raw counters of a kernel are: given by a test, or a fixed function of what was launched, so that
// the truth is known exactly whatever the time, the order or the pass. Any thread.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sim/counters/counter_table.h"
#include "sim/cuptisim.h"

namespace sim {

// Values that a test gave (cuptisim_set_counter): for one kernel name, or with no name for every kernel.
using GivenCounters = std::map<std::string, std::map<RawId, double>, std::less<>>;

// False: no such counter, or one that only time decides (give the kernel a duration instead).
bool give_counter(const char* kernel, const char* counter, double sum);
void clear_given_counters();

// One execution of a kernel. Copies what it needs, so that values given later do not change it; the chip must
// live on.
class KernelCounters {
 public:
  KernelCounters(const cuptisim_op& op, double duration_ns, const Chip& chip);

  // Sum over the whole GPU. Counters that follow from another (hits of lookups) follow a given value too.
  double value(RawId id) const;
  double duration_ns() const { return x_duration; }

 private:
  double usual(const Raw& raw) const;
  double active(Unit unit) const;
  double most_warps() const;
  // Between 0.1 and 0.9, always the same for the same kernel and word (text_hash).
  double fraction(uint64_t word) const;
  const double* given(RawId id) const;

  std::shared_ptr<const GivenCounters> x_given;
  const std::map<RawId, double>* x_mine = nullptr;
  const std::map<RawId, double>* x_everybodys = nullptr;
  uint64_t x_seed;
  double x_blocks, x_threads_per_block, x_registers, x_shared, x_duration;
  const Chip& x_chip;
};

// Cycles of all instances of a unit, or the GPU's time, over this many ns.
double elapsed_value(const Raw& raw, double ns, const Chip& chip);

}  // namespace sim
