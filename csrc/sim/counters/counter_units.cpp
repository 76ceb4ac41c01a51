#include "sim/counters/counter_units.h"

#include <array>

namespace sim {
namespace {

struct Layout {
  const char* product;
  double gpcs, l2_slices, dram_channels, dram_mhz;
};
// Data sheets and NVIDIA's white papers; what they leave out is a round number of the right size.
constexpr std::array kLayouts{
    Layout{"H100", 8, 96, 80, 2619}, Layout{"V100", 6, 64, 32, 877},  Layout{"A100", 7, 80, 40, 1593},
    Layout{"L4", 5, 24, 12, 6251},   Layout{"H200", 8, 96, 96, 3201}, Layout{"B200", 8, 128, 64, 3996},
};

const Layout& layout(const Chip& chip) {
  for (const Layout& l : kLayouts)
    if (std::string_view(l.product) == chip.name) return l;
  return kLayouts[0];  // every product has one
}

constexpr const char* kProducts[kNumCuptiChips] = {"V100", "A100", "L4", "H100", "B200"};  // by CuptiChip

}  // namespace

int cupti_chip_named(std::string_view name) {
  for (uint32_t i = 0; i < kNumCuptiChips; ++i)
    if (name == kCuptiChips[i]) return static_cast<int>(i);
  return -1;
}

uint32_t cupti_chip_of(const Chip& product) {
  for (uint32_t i = 0; i < kNumCuptiChips; ++i)
    if (std::string_view(kProducts[i]) == product.name) return i;
  return kGh100;  // H200
}

Unit unit_named(std::string_view name) {
  if (name == "sm") return Unit::kSm;
  if (name == "smsp") return Unit::kSmsp;
  if (name == "l1tex") return Unit::kL1tex;
  if (name == "lts" || name == "lrc" || name == "syslts") return Unit::kLts;
  if (name == "dram" || name == "dramc") return Unit::kDram;
  if (name == "gpc") return Unit::kGpc;
  if (name == "tpc") return Unit::kTpc;
  if (name == "gpu") return Unit::kGpu;
  if (name == "sys" || name == "gr") return Unit::kSys;
  if (name == "pcie" || name == "nvlrx" || name == "nvltx" || name == "ctc") return Unit::kLink;
  return Unit::kOther;
}

double instances(Unit unit, const Chip& chip) {
  switch (unit) {
    case Unit::kSm:
    case Unit::kL1tex:
      return chip.sms;
    case Unit::kSmsp:
      return 4.0 * chip.sms;
    case Unit::kTpc:
      return chip.sms / 2;
    case Unit::kGpc:
      return layout(chip).gpcs;
    case Unit::kLts:
      return layout(chip).l2_slices;
    case Unit::kDram:
      return layout(chip).dram_channels;
    default:
      return 1;
  }
}

double clock_of(Unit unit, const Chip& chip) {
  switch (unit) {
    case Unit::kDram:
      return layout(chip).dram_mhz / 1e3;
    case Unit::kLts:
      return chip.clock_khz * 0.9 / 1e6;
    case Unit::kSys:
    case Unit::kGpu:
    case Unit::kLink:
      return chip.clock_khz * 0.8 / 1e6;
    default:
      return chip.clock_khz / 1e6;
  }
}

double peak_per_cycle(Unit unit, std::string_view dimension, std::string_view name, const Chip& chip) {
  const auto has = [](std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
  };
  const bool sm = unit == Unit::kSm;
  if (has(dimension, "cyclewarp")) return sm ? chip.warps_per_sm : chip.warps_per_sm / 4.0;
  if (has(dimension, "cycle")) return 1;
  if (dimension == "nanosecond") return 1 / clock_of(unit, chip);
  if (unit == Unit::kDram) {
    const double bytes =
        static_cast<double>(chip.bandwidth_kb) * 1e3 / (instances(unit, chip) * clock_of(unit, chip) * 1e9);
    return dimension == "byte" ? bytes : bytes / 32;
  }
  if (dimension == "byte") return sm ? 128 : 64;
  if (dimension == "l2_sector") return unit == Unit::kL1tex ? 4 : 2;
  if (dimension == "math_op") return 4096;
  if (dimension == "instruction") return (has(name, "thread_inst") ? 32 : 1) * (sm ? 4.0 : 1.0);
  return 1;
}

}  // namespace sim
