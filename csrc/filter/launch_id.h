// One launch identity "context:stream:name:invocation" of nvprof's --kernels or ncu's --kernel-id.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "filter/name_parts.h"
#include "filter/pattern.h"

namespace cuptiprof {

// Of the constructors below: `field` is a part of the text `whole`, from byte `position` on; `what` is what
// the user calls that text. They throw Error(kFilter).

// A context or stream: any, one ID, or a regular expression on the decimal ID (whole) or the NVTX-given name
// (search).
class IdMatcher {
 public:
  IdMatcher() = default;
  IdMatcher(std::string_view field, std::string_view what, std::string_view whole, size_t position);
  [[nodiscard]] bool matches(uint32_t id, std::string_view name) const noexcept;
  [[nodiscard]] bool any() const noexcept { return !x_id && !x_regex; }

 private:
  std::optional<uint32_t> x_id;
  std::optional<Regex> x_regex;
  std::string x_text;  // as written: a name that looks just so matches whatever its regular expression says
};

// Which invocation of a kernel, from 1: any, a number, or a regular expression on the whole number.
class InvocationMatcher {
 public:
  InvocationMatcher() = default;
  InvocationMatcher(std::string_view field, std::string_view what, std::string_view whole, size_t position);
  [[nodiscard]] bool matches(uint64_t invocation) const noexcept;
  [[nodiscard]] bool any() const noexcept { return !x_number && !x_regex; }

 private:
  std::optional<uint64_t> x_number;
  std::optional<Regex> x_regex;
};

struct LaunchId {
  enum class Counting {
    kNvprof,  // invocations of a kernel name in a context and stream
    kNcu,     // invocations of name, grid, block and shared memory; of a context or stream only where one is
              // given
  };
  static LaunchId from_nvprof(std::string_view text);
  static LaunchId from_ncu(std::string_view text);

  std::string text;
  Counting counting = Counting::kNcu;
  IdMatcher context, stream;
  std::optional<Pattern> name;
  bool name_on_base = true;  // false: on the demangled name (nvprof)
  InvocationMatcher invocation;
};

}  // namespace cuptiprof
