#include "filter/nearest_names.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

#include "base/demangle/demangle.h"
#include "filter/pattern.h"

namespace cuptiprof {
namespace {

constexpr size_t kMaxNames = 20000;
constexpr size_t kComparedBytes = 256;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string comparable(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kComparedBytes)) out += lower(c);
  return out;
}

// Letters of the wanted name without the operators of globs, regular expressions and "a::b".
std::string wanted_text(std::string_view wanted) {
  if (wanted.starts_with(kRegexPrefix)) wanted.remove_prefix(kRegexPrefix.size());
  if (const size_t scope = wanted.rfind("::"); scope != std::string_view::npos)
    wanted.remove_prefix(scope + 2);
  std::string out;
  for (const char c : wanted.substr(0, kComparedBytes))
    if (std::string_view("*?[]().^$|+\\{}:!").find(c) == std::string_view::npos) out += lower(c);
  return out;
}

// Edits that make `wanted` occur inside `name` (Sellers' algorithm: the ends of the name are free).
size_t edits_inside(std::string_view wanted, std::string_view name, std::vector<size_t>& column) {
  column.resize(wanted.size() + 1);
  for (size_t i = 0; i <= wanted.size(); ++i) column[i] = i;
  size_t best = wanted.size();
  for (const char c : name) {
    size_t diagonal = 0;
    for (size_t i = 1; i <= wanted.size(); ++i) {
      const size_t left = column[i];
      column[i] = std::min({left + 1, column[i - 1] + 1, diagonal + (wanted[i - 1] != c)});
      diagonal = left;
    }
    best = std::min(best, column[wanted.size()]);
  }
  return best;
}

}  // namespace

std::vector<std::string> nearest_names(std::string_view wanted, std::span<const std::string> names,
                                       size_t limit) {
  const std::string target = wanted_text(wanted);
  struct Candidate {
    size_t edits, length_difference;
    std::string name;
    bool operator<(const Candidate& o) const {
      return std::tie(edits, length_difference, name) < std::tie(o.edits, o.length_difference, o.name);
    }
  };
  std::vector<Candidate> candidates;
  std::unordered_set<std::string> seen;
  std::vector<size_t> column;
  for (const std::string& raw : names) {
    if (seen.size() >= kMaxNames) break;
    std::string name = function_base(demangle(raw));
    if (name.empty() || !seen.insert(name).second) continue;
    const std::string text = comparable(name);
    const size_t difference = std::max(text.size(), target.size()) - std::min(text.size(), target.size());
    candidates.push_back({edits_inside(target, text, column), difference, std::move(name)});
  }
  const size_t n = std::min(limit, candidates.size());
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(n),
                    candidates.end());
  std::vector<std::string> out;
  for (size_t i = 0; i < n; ++i) out.push_back(std::move(candidates[i].name));
  return out;
}

}  // namespace cuptiprof
