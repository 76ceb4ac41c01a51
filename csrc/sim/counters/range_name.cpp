#include "sim/counters/range_name.h"

#include <mutex>
#include <unordered_set>

namespace sim {

std::string joined_range_name(std::string_view levels, const char* delimiter) {
  std::string out;
  for (const char c : levels) {
    if (c != '\0')
      out += c;
    else
      out += delimiter ? delimiter : "/";
  }
  return out;
}

const char* kept_text(const std::string& text) {
  static std::mutex mutex;                                   // guards the texts
  static auto* texts = new std::unordered_set<std::string>;  // never destroyed (Machine::get)
  const std::lock_guard lock(mutex);
  return texts->insert(text).first->c_str();
}

}  // namespace sim
