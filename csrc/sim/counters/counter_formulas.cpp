#include "sim/counters/counter_formulas.h"

#include <algorithm>

namespace sim {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  if (const size_t at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

// The quantity without the configuration it is counted in: "TPC.TriageCompute.sm__x_realtime" is sm__x.
std::string plain(std::string name) {
  if (const size_t dot = name.rfind('.'); dot != std::string::npos) name.erase(0, dot + 1);
  if (name.ends_with("_realtime")) name.resize(name.size() - 9);
  return name;
}

}  // namespace

RatioFormula ratio_formula(const std::string& base) {
  const std::string name = plain(base);
  const size_t unit_end = name.find("__");
  const std::string unit = name.substr(0, unit_end + 2);
  std::string quantity = name.substr(unit_end + 2);
  // lts__t_sector_op_read_hit_rate: of the sectors looked up for reads, those that hit
  if (quantity.ends_with("_hit_rate")) {
    quantity.resize(quantity.size() - 9);
    quantity = replaced(replaced(quantity, "average_", ""), "t_sector", "t_sectors");
    return {unit + quantity + "_lookup_hit", "l2_sector", unit + quantity, "l2_sector", 1};
  }
  const bool sass = quantity.starts_with("sass_");
  quantity = replaced(replaced(quantity, "sass_", ""), "average_", "");
  const std::string prefix = unit + (sass ? "sass_" : "");
  const size_t per = quantity.find("_per_");
  if (per == std::string::npos)
    return {unit + quantity + ".numerator", "instruction", unit + quantity + ".denominator", "instruction",
            1};
  std::string above = quantity.substr(0, per), below = quantity.substr(per + 5);
  // What follows the unit of a memory ratio qualifies both sides: ..sectors_per_request_pipe_lsu_..
  for (const char* noun : {"sector", "request", "wavefront"})
    if (below.starts_with(std::string(noun) + "_")) {
      const std::string qualifier = below.substr(std::string_view(noun).size());
      const std::string stage = above.starts_with("t_") ? "t_" : "";
      const bool bytes = has(above, "bytes");
      const double max_rate = bytes ? (noun[0] == 's' ? 32 : 128) : 32;
      return {prefix + above + qualifier, bytes ? "byte" : "l2_sector",
              prefix + stage + noun + "s" + qualifier, noun[0] == 's' ? "l2_sector" : "l1tex_request",
              max_rate};
    }
  if (below == "warp") below = "warps_launched";
  if (below == "warp_active") below = "warps_active";
  if (above.starts_with("warp_issue_stalled")) above = replaced(above, "warp_", "warps_");
  if (above == "warp_latency") above = "warps_active";
  const auto dimension = [](const std::string& n) {
    return n == "warps_launched" ? "warp"
           : has(n, "warps_")    ? "gpc_cyclewarp"
           : n == "issue_active" ? "gpc_cycle"
                                 : "instruction";
  };
  const double max_rate = has(above, "thread_inst") ? 32 : 1;
  return {unit + above, dimension(above), unit + below, dimension(below), max_rate};
}

std::vector<RawId> constituents_of(const Metric& metric, const std::vector<Raw>& raws) {
  const std::string name = plain(metric.name);
  std::vector<RawId> out;
  const bool triage = metric.name.find("Triage") != std::string::npos;
  const auto take = [&](Unit unit, size_t most, std::string_view part = "") {
    size_t taken = 0;
    for (size_t i = 0; i < raws.size() && taken < most; ++i) {
      const Raw& r = raws[i];
      // A constituent must be there on every chip that has the metric, so that the metric means the same.
      if (r.unit != unit || r.kind != Raw::Kind::kUsual || r.sass || r.exclusive || has(r.name, "Triage") ||
          (r.range_chips & metric.range_chips) != metric.range_chips || !has(r.name, part))
        continue;
      out.push_back(static_cast<RawId>(i));
      ++taken;
    }
  };
  if (has(name, "read_throughput") && metric.unit == Unit::kDram)
    take(Unit::kDram, 1, "bytes_read");
  else if (has(name, "write_throughput") && metric.unit == Unit::kDram)
    take(Unit::kDram, 1, "bytes_write");
  else if (metric.unit == Unit::kDram || has(name, "gpu__dram"))
    take(Unit::kDram, 4, "bytes");
  else if (has(name, "sm__memory"))
    take(Unit::kSm, 2, "pipe_shared"), take(Unit::kL1tex, 12);
  else if (metric.unit == Unit::kSm)
    take(Unit::kSm, triage                     ? 3
                    : has(name, "instruction") ? 12
                                               : 20),
        take(Unit::kSmsp, triage || has(name, "instruction") ? 0 : 12);
  else if (metric.unit == Unit::kL1tex)
    take(Unit::kL1tex, 16);
  else if (metric.unit == Unit::kLts)
    take(Unit::kLts, 8);
  else if (has(name, "access"))
    take(Unit::kL1tex, 8), take(Unit::kLts, 4), take(Unit::kDram, 2, "bytes");
  else if (has(name, "request"))
    take(Unit::kL1tex, 8, "xbar"), take(Unit::kLts, 4, "xbar");
  else if (metric.unit == Unit::kGpu)
    take(Unit::kL1tex, 16), take(Unit::kLts, 8), take(Unit::kDram, 2, "bytes");
  if (out.empty())
    for (size_t i = 0; i < raws.size() && out.size() < 2; ++i)
      if (raws[i].unit == metric.unit && raws[i].kind == Raw::Kind::kUsual && !raws[i].sass)
        out.push_back(static_cast<RawId>(i));
  return out;
}

void relate(std::vector<Raw>& raws, const std::unordered_map<std::string, RawId>& by_name, RawId id) {
  Raw& r = raws[id];
  const auto find = [&](const std::string& n) {
    const auto at = by_name.find(n);
    return at == by_name.end() || at->second == id ? kNoRaw : at->second;
  };
  r.hash = text_hash(r.name);
  r.sass = has(r.name, "__sass_");
  r.exclusive = r.unit == Unit::kLts && has(r.name, "lookup_");
  std::string name = plain(r.name);
  if (name.ends_with("__cycles_elapsed")) r.kind = Raw::Kind::kElapsed;
  if (name.ends_with("__cycles_active")) r.kind = Raw::Kind::kActive;
  if (name == "gpu__time_duration") r.kind = Raw::Kind::kTime;
  r.free = r.kind != Raw::Kind::kUsual;
  r.alias = find(name);
  if (r.alias != kNoRaw || r.kind != Raw::Kind::kUsual) return;
  // A sub-partition's counters add up to the SM's.
  if (name.starts_with("smsp__")) r.alias = find("sm__" + name.substr(6));
  if (r.alias != kNoRaw) return;
  r.sectors = find(replaced(name, "bytes", "sectors"));
  // What was asked for is at most all of the sectors moved for it: efficiencies are no more than 100 %.
  if (has(name, "__sass_data_bytes_mem_")) {
    r.parent = find(replaced(name, "data_bytes", "sectors"));
    r.scale = 32;
    if (r.parent != kNoRaw) return;
  }
  for (const auto& [part, other] : {std::pair{"_write", "_read"}, {"_lookup_miss", "_lookup_hit"}})
    if (name.ends_with(part)) {
      const std::string whole = name.substr(0, name.size() - std::string_view(part).size());
      r.parent = find(whole);
      r.rest = r.parent == kNoRaw ? kNoRaw : find(whole + other);
      if (r.rest != kNoRaw) return;
    }
  if (has(name, "__warps_issue_stalled_") || has(name, "__warps_eligible")) {
    r.parent = find(name.substr(0, name.find("__")) + "__warps_active");
    r.scale = 0.05;
    return;
  }
  for (size_t end = name.rfind('_'); end != std::string::npos && end > name.find("__") + 2;
       end = name.rfind('_', end - 1))
    if (const RawId parent = find(name.substr(0, end));
        parent != kNoRaw && raws[parent].kind == Raw::Kind::kUsual) {
      r.parent = parent;
      return;
    }
}

}  // namespace sim
