// The two images of the counter API, in the stand-in's own format. A configuration image says which raw
// counters to collect in which pass, a counter-data image holds their values, one row a range or a sample.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/counters/counter_table.h"

namespace sim {

struct CounterConfig {
  uint32_t chip = 0;  // kCuptiChips
  Profiler profiler = Profiler::kRange;
  uint32_t passes = 0;
  struct Entry {
    RawId id;
    uint16_t pass;
  };
  std::vector<Entry> entries;  // by ID
};

// Puts each raw counter into the first pass that has room for it: a unit counts only so many at a time.
CounterConfig plan_passes(uint32_t chip, Profiler profiler, std::vector<RawId> ids);

std::vector<uint8_t> config_image(const CounterConfig& config);
// False: not an image, or a damaged one.
bool read_config(const uint8_t* image, size_t size, CounterConfig& out);

// A view of the caller's memory; every access stays inside it.
class CounterData {
 public:
  static constexpr size_t kNameBytes = 256;  // of a range's name; more is cut off
  static size_t bytes(size_t counters, size_t rows);
  // Writes an image without rows. False: it does not fit into `size`.
  static bool initialize(uint8_t* image, size_t size, const Chip& product, Profiler profiler,
                         std::span<const RawId> ids, size_t rows);
  // Not valid: not an image, or a damaged one.
  CounterData(const uint8_t* image, size_t size);
  bool valid() const { return x_image != nullptr; }
  uint32_t chip() const;
  const Chip& product() const;  // whose units and clocks turn the sums into rates
  Profiler profiler() const;
  size_t capacity() const;
  size_t rows() const;

  double value(size_t row, RawId id) const;  // NaN: not collected
  std::string name(size_t row) const;        // levels of a nested range parted by '\0'
  uint64_t start(size_t row) const;
  uint64_t end(size_t row) const;

  // Of an image that is the caller's to write. False: it is full.
  static bool add_row(uint8_t* image, size_t size, std::string_view name, uint64_t start, uint64_t end);
  static void set_value(uint8_t* image, size_t size, size_t row, RawId id, double value);

 private:
  const uint8_t* x_image = nullptr;
  size_t x_size = 0;
};

}  // namespace sim
