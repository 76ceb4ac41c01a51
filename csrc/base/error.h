// The control path raises Error; the bindings turn it into the Python class of the same kind. The data path
// never throws.
#pragma once
#include <stdexcept>
#include <string>
#include <utility>

namespace cuptiprof {

enum class ErrorKind { kGeneric, kCupti, kDevice, kSession, kFilter, kBudget, kResult, kMetric };

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string message, std::string hint = {})
      : std::runtime_error(message), x_kind(kind), x_hint(std::move(hint)) {}

  // A failed CUPTI or driver call: code and name of the result, and the function that returned it.
  static Error from_call(std::string message, std::string hint, int code, std::string name,
                         std::string call) {
    Error e(ErrorKind::kCupti, std::move(message), std::move(hint));
    e.x_code = code;
    e.x_name = std::move(name);
    e.x_call = std::move(call);
    return e;
  }

  ErrorKind kind() const noexcept { return x_kind; }
  const std::string& hint() const noexcept { return x_hint; }
  int code() const noexcept { return x_code; }
  const std::string& name() const noexcept { return x_name; }
  const std::string& call() const noexcept { return x_call; }

 private:
  ErrorKind x_kind;
  std::string x_hint;
  int x_code = 0;
  std::string x_name;
  std::string x_call;
};

}  // namespace cuptiprof
