// "no kernel matched X; the nearest names were ...": for messages about names of kernels, metrics and chips
// that are not there. On a user's thread.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cuptiprof {

// At most `limit` of the names, nearest to what was wanted first, as function names. `wanted` may be a glob
// or "regex:..."; its operators are ignored. Nearness: how many edits make the wanted text a part of the
// name, then the difference in length. Cost is bounded: the first 20,000 distinct names and 256 bytes of each
// count.
std::vector<std::string> nearest_names(std::string_view wanted, std::span<const std::string> names,
                                       size_t limit = 5);

}  // namespace cuptiprof
