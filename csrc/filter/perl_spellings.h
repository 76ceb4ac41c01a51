// Perl's spellings that POSIX ERE does not have. libc would read most of them as something else without a
// word.
#pragma once
#include <cstddef>
#include <string_view>

namespace cuptiprof {

// Throws Error(kFilter) at the first one, with the POSIX spelling as hint. `ere` is a part of `whole`, from
// byte `position` on. What is not closed or ends in a backslash is left to the caller.
void refuse_perl_spellings(std::string_view ere, std::string_view what, std::string_view whole,
                           size_t position);

// One past the ']' of the bracket expression that begins at `begin` ('['); npos when it is not closed.
size_t bracket_end(std::string_view ere, size_t begin) noexcept;

}  // namespace cuptiprof
