#include "sim/counters/availability.h"

#include <algorithm>
#include <cstring>

#include "sim/counters/counter_units.h"
#include "sim/counters/metric_eval.h"
#include "sim/counters/profiler_objects.h"
#include "sim/machine/faults.h"

namespace sim {
namespace {

constexpr char kMagic[8] = {'S', 'I', 'M', 'A', 'V', 'A', '0', '2'};

struct Image {
  char magic[8];
  char chip[8];
  uint8_t links;
  char lacking[503];  // names, each with its '\0'
};

}  // namespace

CUptiResult write_availability(uint32_t device, Links links, size_t& size, uint8_t* image) {
  Image a{};
  std::memcpy(a.magic, kMagic, sizeof kMagic);
  const char* chip = kCuptiChips[cupti_chip_of(chip_of_device(device))];
  std::memcpy(a.chip, chip, std::min(sizeof a.chip - 1, std::strlen(chip)));
  a.links = links == Links::kIncluded;
  size_t at = 0;
  for (const std::string& name : names_of(CUPTISIM_FAULT_UNAVAILABLE)) {
    if (at + name.size() + 2 > sizeof a.lacking) break;
    std::memcpy(a.lacking + at, name.c_str(), name.size() + 1);
    at += name.size() + 1;
  }
  if (image && size < sizeof a) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  if (image) std::memcpy(image, &a, sizeof a);
  size = sizeof a;
  return CUPTI_SUCCESS;
}

std::optional<Availability> read_availability(const uint8_t* image) {
  Image a;
  std::memcpy(&a, image, sizeof a);
  if (std::memcmp(a.magic, kMagic, sizeof kMagic) != 0) return std::nullopt;
  Availability out{a.chip, a.links ? Links::kIncluded : Links::kLeftOut, {}};
  for (const char* name = a.lacking; *name; name += std::strlen(name) + 1) out.lacking.emplace_back(name);
  return out;
}

std::vector<RawId> unavailable_raws(uint32_t cupti_chip, Profiler profiler) {
  std::vector<RawId> out;
  for (const std::string& name : names_of(CUPTISIM_FAULT_UNAVAILABLE)) {
    const auto ref = find_metric(name, cupti_chip, profiler);
    if (!ref) continue;
    for (const RawId id : needed_raws(*ref))
      if (!raws()[id].free) out.push_back(id);
  }
  return out;
}

}  // namespace sim
