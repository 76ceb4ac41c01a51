#include "counters/plan/pass_packing.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace cuptiprof {
namespace {

using Names = std::vector<std::string>;

constexpr size_t kSmall = 8;  // groups of so many metrics are tried to be spread over the others

Names joined(const Names& a, const Names& b) {
  Names out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

// First fit, group by group: each takes, in the given order, every metric left that still fits. As many at
// once as have just fitted, twice as many the next time: runs that do fit cost few tries.
std::vector<PassGroup> first_fit(Names left, const FitOnePass& fit) {
  std::vector<PassGroup> out;
  while (!left.empty()) {
    PassGroup group;
    Names rest;
    size_t step = 1;
    for (size_t i = 0; i < left.size();) {
      const size_t count = std::min(step, left.size() - i);
      const auto from = left.begin() + static_cast<std::ptrdiff_t>(i);
      if (auto bigger = fit(joined(group.metrics, Names(from, from + static_cast<std::ptrdiff_t>(count))))) {
        group = *std::move(bigger);
        i += count;
        step *= 2;
      } else if (count == 1) {
        rest.push_back(left[i++]);
      } else {
        step = count / 2;
      }
    }
    if (group.metrics.empty())
      throw Error(ErrorKind::kMetric, rest.front() + " does not fit one pass", "leave it out");
    out.push_back(std::move(group));
    left = std::move(rest);
  }
  return out;
}

bool place(const Names& metrics, std::vector<PassGroup>& groups, const FitOnePass& fit) {
  for (PassGroup& g : groups) {
    if (auto bigger = fit(joined(g.metrics, metrics))) {
      g = *std::move(bigger);
      return true;
    }
  }
  return false;
}

// Groups that the others can take over, one metric at a time.
void dissolve_small(std::vector<PassGroup>& groups, const FitOnePass& fit) {
  std::stable_sort(groups.begin(), groups.end(), [](const PassGroup& a, const PassGroup& b) {
    return a.metrics.size() > b.metrics.size();
  });
  for (size_t i = groups.size(); i-- > 0;) {
    if (groups[i].metrics.size() > kSmall) break;
    std::vector<PassGroup> others = groups;
    const PassGroup small = std::move(others[i]);
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const bool all = std::all_of(small.metrics.begin(), small.metrics.end(),
                                 [&](const std::string& m) { return place({m}, others, fit); });
    if (all) groups = std::move(others);
  }
}

}  // namespace

std::vector<PassGroup> pack_one_pass(const std::vector<Names>& units, const FitOnePass& fit) {
  std::vector<std::vector<PassGroup>> packed;
  for (const Names& unit : units) packed.push_back(first_fit(unit, fit));
  std::stable_sort(packed.begin(), packed.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::vector<PassGroup> out;
  for (std::vector<PassGroup>& unit : packed)
    for (PassGroup& group : unit)
      if (!place(group.metrics, out, fit)) out.push_back(std::move(group));
  dissolve_small(out, fit);
  return out;
}

}  // namespace cuptiprof
