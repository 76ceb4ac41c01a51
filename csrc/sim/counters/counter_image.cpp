#include "sim/counters/counter_image.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace sim {
namespace {

struct ConfigHeader {
  char magic[8];
  uint64_t checksum;                         // of what follows
  uint32_t chip, profiler, passes, entries;  // profiler: Profiler
};
constexpr char kConfigMagic[8] = {'S', 'I', 'M', 'C', 'F', 'G', '0', '1'};

struct DataHeader {
  char magic[8];
  char product[8];                              // chip_named
  uint64_t profiler, counters, capacity, rows;  // profiler: Profiler
};
constexpr char kDataMagic[8] = {'S', 'I', 'M', 'C', 'T', 'R', '0', '1'};

struct RowHeader {
  uint64_t start, end;
  uint64_t name_length;
  char name[CounterData::kNameBytes];
};

// Of everything behind it in a configuration image of `size` bytes.
uint64_t checksum(const uint8_t* image, size_t size) {
  constexpr size_t kFrom = offsetof(ConfigHeader, chip);
  return text_hash({reinterpret_cast<const char*>(image) + kFrom, size - kFrom});
}

// Raw counters of one unit in one pass. NVIDIA's limits depend on the signals; these give pass counts of the
// same order for the sets that people ask for.
size_t limit_of(Unit unit, Profiler profiler) {
  switch (unit) {
    case Unit::kSm:
    case Unit::kL1tex:
      return profiler == Profiler::kSampling ? 2 : 4;
    case Unit::kLts:
      return 2;
    case Unit::kDram:
    case Unit::kLink:
      return 8;
    default:
      return 4;
  }
}

// A sub-partition's counters go through its SM's monitor.
Unit monitor_of(Unit unit) { return unit == Unit::kSmsp ? Unit::kSm : unit; }

bool together_with_all(const Raw& r) {  // NVIDIA's prepared groups for sampling fit into one pass as they are
  return r.free || r.name.find(".Triage") != std::string::npos;
}

size_t ids_bytes(size_t counters) { return (counters * sizeof(RawId) + 7) / 8 * 8; }

size_t row_bytes(size_t counters) { return sizeof(RowHeader) + counters * sizeof(double); }

DataHeader header_of(const uint8_t* image) {
  DataHeader h;
  std::memcpy(&h, image, sizeof h);
  return h;
}

size_t row_offset(const DataHeader& h, size_t row) {
  return sizeof(DataHeader) + ids_bytes(h.counters) + row * row_bytes(h.counters);
}

size_t column_of(const uint8_t* image, const DataHeader& h, RawId id) {
  for (size_t i = 0; i < h.counters; ++i) {
    RawId found;
    std::memcpy(&found, image + sizeof h + i * sizeof found, sizeof found);
    if (found == id) return i;
  }
  return h.counters;
}

}  // namespace

CounterConfig plan_passes(uint32_t chip, Profiler profiler, std::vector<RawId> ids) {
  CounterConfig config{chip, profiler, 0, {}};
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  struct Used {
    size_t count = 0;
    bool exclusive = false;
  };
  constexpr uint16_t kLast = 0xffff;  // the pass after all others, until their number is known
  std::vector<std::array<Used, kUnits>> passes;
  bool sass = false, any = false;
  for (const RawId id : ids) {
    const Raw& r = raws()[id];
    any = true;
    if (together_with_all(r)) {
      config.entries.push_back({id, 0});
      continue;
    }
    if (r.sass) {
      sass = true;
      config.entries.push_back({id, kLast});
      continue;
    }
    const Unit monitor = monitor_of(r.unit);
    size_t pass = 0;
    for (;; ++pass) {
      if (pass == passes.size()) passes.emplace_back();
      Used& used = passes[pass][static_cast<size_t>(monitor)];
      if (used.count != 0 && (used.exclusive != r.exclusive || used.count >= limit_of(monitor, profiler)))
        continue;
      ++used.count;
      used.exclusive = r.exclusive;
      break;
    }
    config.entries.push_back({id, static_cast<uint16_t>(pass)});
  }
  for (auto& e : config.entries)
    if (e.pass == kLast) e.pass = static_cast<uint16_t>(passes.size());
  const size_t count = passes.size() + (sass ? 1 : 0);
  config.passes = static_cast<uint32_t>(any ? std::max<size_t>(count, 1) : 0);
  return config;
}

std::vector<uint8_t> config_image(const CounterConfig& c) {
  ConfigHeader h{};
  std::memcpy(h.magic, kConfigMagic, sizeof h.magic);
  h.chip = c.chip, h.profiler = static_cast<uint32_t>(c.profiler), h.passes = c.passes;
  h.entries = static_cast<uint32_t>(c.entries.size());
  std::vector<uint8_t> image(sizeof h + c.entries.size() * sizeof(CounterConfig::Entry));
  if (!c.entries.empty())
    std::memcpy(image.data() + sizeof h, c.entries.data(), c.entries.size() * sizeof(CounterConfig::Entry));
  std::memcpy(image.data(), &h, sizeof h);
  h.checksum = checksum(image.data(), image.size());
  std::memcpy(image.data(), &h, sizeof h);
  return image;
}

bool read_config(const uint8_t* image, size_t size, CounterConfig& out) {
  ConfigHeader h;
  if (!image || size < sizeof h) return false;
  std::memcpy(&h, image, sizeof h);
  if (std::memcmp(h.magic, kConfigMagic, sizeof h.magic) != 0 || h.chip >= kNumCuptiChips ||
      h.profiler > static_cast<uint32_t>(Profiler::kSampling))
    return false;
  if (h.entries > raws().size()) return false;
  const size_t expected = sizeof h + h.entries * sizeof(CounterConfig::Entry);
  if (size < expected || checksum(image, expected) != h.checksum) return false;
  out = {h.chip, static_cast<Profiler>(h.profiler), h.passes, {}};
  out.entries.resize(h.entries);
  if (h.entries) std::memcpy(out.entries.data(), image + sizeof h, expected - sizeof h);
  for (const auto& e : out.entries)
    if (e.id >= raws().size() || e.pass >= std::max(h.passes, 1u)) return false;
  return true;
}

size_t CounterData::bytes(size_t counters, size_t rows) {
  return sizeof(DataHeader) + ids_bytes(counters) + rows * row_bytes(counters);
}

bool CounterData::initialize(uint8_t* image, size_t size, const Chip& product, Profiler profiler,
                             std::span<const RawId> ids, size_t rows) {
  if (!image || size < bytes(ids.size(), rows)) return false;
  std::memset(image, 0, bytes(ids.size(), rows));
  DataHeader h{};
  std::memcpy(h.magic, kDataMagic, sizeof h.magic);
  std::memcpy(h.product, product.name, std::min(sizeof h.product - 1, std::strlen(product.name)));
  h.profiler = static_cast<uint64_t>(profiler);
  h.counters = ids.size(), h.capacity = rows;
  std::memcpy(image, &h, sizeof h);
  if (!ids.empty()) std::memcpy(image + sizeof h, ids.data(), ids.size_bytes());
  return true;
}

CounterData::CounterData(const uint8_t* image, size_t size) {
  if (!image || size < sizeof(DataHeader)) return;
  const DataHeader h = header_of(image);
  if (std::memcmp(h.magic, kDataMagic, sizeof h.magic) != 0 || h.product[sizeof h.product - 1] != 0 ||
      h.profiler > static_cast<uint64_t>(Profiler::kSampling) || !chip_named(h.product) ||
      h.counters > raws().size() || h.rows > h.capacity || h.capacity > size / sizeof(RowHeader) ||
      size < bytes(h.counters, h.capacity))
    return;
  x_image = image;
  x_size = size;
}

const Chip& CounterData::product() const { return *chip_named(header_of(x_image).product); }
uint32_t CounterData::chip() const { return cupti_chip_of(product()); }
Profiler CounterData::profiler() const { return static_cast<Profiler>(header_of(x_image).profiler); }
size_t CounterData::capacity() const { return header_of(x_image).capacity; }
size_t CounterData::rows() const { return header_of(x_image).rows; }

double CounterData::value(size_t row, RawId id) const {
  const DataHeader h = header_of(x_image);
  const size_t column = column_of(x_image, h, id);
  if (row >= h.rows || column == h.counters) return std::numeric_limits<double>::quiet_NaN();
  double v;
  std::memcpy(&v, x_image + row_offset(h, row) + sizeof(RowHeader) + column * sizeof v, sizeof v);
  return v;
}

std::string CounterData::name(size_t row) const {
  RowHeader r;
  std::memcpy(&r, x_image + row_offset(header_of(x_image), row), sizeof r);
  return {r.name, std::min<size_t>(r.name_length, kNameBytes)};
}

uint64_t CounterData::start(size_t row) const {
  RowHeader r;
  std::memcpy(&r, x_image + row_offset(header_of(x_image), row), sizeof r);
  return r.start;
}

uint64_t CounterData::end(size_t row) const {
  RowHeader r;
  std::memcpy(&r, x_image + row_offset(header_of(x_image), row), sizeof r);
  return r.end;
}

bool CounterData::add_row(uint8_t* image, size_t size, std::string_view name, uint64_t start, uint64_t end) {
  const CounterData data(image, size);
  if (!data.valid() || data.rows() >= data.capacity()) return false;
  DataHeader h = header_of(image);
  RowHeader r{};
  r.start = start, r.end = end;
  r.name_length = std::min(name.size(), kNameBytes);
  std::memcpy(r.name, name.data(), r.name_length);
  uint8_t* at = image + row_offset(h, h.rows);
  std::memcpy(at, &r, sizeof r);
  for (size_t i = 0; i < h.counters; ++i) {
    const double none = std::numeric_limits<double>::quiet_NaN();
    std::memcpy(at + sizeof r + i * sizeof none, &none, sizeof none);
  }
  ++h.rows;
  std::memcpy(image, &h, sizeof h);
  return true;
}

void CounterData::set_value(uint8_t* image, size_t size, size_t row, RawId id, double value) {
  const CounterData data(image, size);
  if (!data.valid() || row >= data.rows()) return;
  const DataHeader h = header_of(image);
  const size_t column = column_of(image, h, id);
  if (column == h.counters) return;
  std::memcpy(image + row_offset(h, row) + sizeof(RowHeader) + column * sizeof value, &value, sizeof value);
}

}  // namespace sim
