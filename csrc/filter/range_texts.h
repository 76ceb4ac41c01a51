// The open ranges of a launch out of the text of its columns: the inverse of what wrote them.
#pragma once
#include <string_view>
#include <vector>

#include "threads/scope_label.h"

namespace cuptiprof {

// "outer/io@read": ranges of the columns `nvtx` (separator '/') and `nvtx_start_end` (','). A backslash takes
// the meaning of the character after it away.
std::vector<ScopeLabel> split_ranges(std::string_view text, char separator);

// The scopes of a path of the column `region`, of which `nvtx` may be some: those are NVTX ranges, the others
// regions. Leaves in `nvtx` what is not of the path. Where a region is called as a range is, the outermost
// counts as the range.
std::vector<ScopeLabel> label_path(std::string_view path, std::vector<ScopeLabel>& nvtx);

}  // namespace cuptiprof
