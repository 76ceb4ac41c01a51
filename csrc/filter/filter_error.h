// Error of a filter's text: what is wrong, where, and what to write instead.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace cuptiprof {

// Printable, valid UTF-8, at most ~160 bytes, in single quotes: safe to put into any message.
std::string quoted(std::string_view text);

// "bad <what> '<text>' at character <position + 1>: <problem>"
[[noreturn]] void throw_filter_error(std::string_view what, std::string_view text, size_t position,
                                     std::string_view problem, std::string_view hint);

}  // namespace cuptiprof
