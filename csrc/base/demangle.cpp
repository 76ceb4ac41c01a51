#include "base/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace cuptiprof {

std::string demangle(std::string_view mangled) {
  constexpr size_t kMaxMangled = 16384;
  if (!mangled.starts_with("_Z") || mangled.size() > kMaxMangled ||
      mangled.find('\0') != std::string_view::npos)
    return std::string(mangled);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(std::string(mangled).c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? std::string(text.get()) : std::string(mangled);
}

}  // namespace cuptiprof
