// The forms of a kernel's name that a filter may look at.
#pragma once
#include <string>
#include <string_view>

#include "base/demangle/demangle.h"

namespace cuptiprof {

enum class NameBase { kFunction, kDemangled, kMangled };

struct NameParts {
  // "_ZN2at4gemmIfEEvPT_", "void at::gemm<float>(float*)", "at::gemm", "gemm".
  std::string mangled, demangled, qualified, function;

  NameParts() = default;
  // From the one name that CUPTI gives (mangled) or a trace holds (often demangled already).
  explicit NameParts(std::string_view raw)
      : mangled(raw),
        demangled(demangle(raw)),
        qualified(qualified_name(demangled)),
        function(function_base(demangled)) {}

  [[nodiscard]] const std::string& at(NameBase base) const noexcept {
    return base == NameBase::kFunction ? function : base == NameBase::kDemangled ? demangled : mangled;
  }
};

}  // namespace cuptiprof
