// Range names as the API hands them out.
#pragma once
#include <string>
#include <string_view>

namespace sim {

// Levels of a nested range ('\0' between them) joined by the delimiter; null: "/".
std::string joined_range_name(std::string_view levels, const char* delimiter);

// A copy that lives as long as the library: for pointers whose owner the API does not name.
const char* kept_text(const std::string& text);

}  // namespace sim
