// Error of a filter's text: what is wrong, where, and what to write instead. For whoever parses one: filters
// are made on a user's thread, never in a callback.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace cuptiprof {

// Printable, valid UTF-8, at most ~160 bytes, in single quotes: safe to put into any message.
std::string in_quotes(std::string_view text);

// "bad <what> '<text>' at character <n>: <problem>". `what`: what the text is to the user ("kernel pattern");
// `position`: the fault's byte in it, shown as a character counted from 1.
[[noreturn]] void throw_filter_error(std::string_view what, std::string_view text, size_t position,
                                     std::string_view problem, std::string_view hint);

}  // namespace cuptiprof
