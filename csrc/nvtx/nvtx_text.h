// Texts that programs pass to NVTX.
#pragma once
#include <cstddef>
#include <string_view>

namespace cuptiprof::nvtx {

// Of a terminated text, at most kMaxText bytes. Null is "".
std::string_view text_of(const char* ascii) noexcept;

// A wide text as UTF-8, in `room` bytes that the caller owns.
std::string_view text_of(const wchar_t* wide, char* out, size_t room) noexcept;

}  // namespace cuptiprof::nvtx
