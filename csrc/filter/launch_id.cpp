#include "filter/launch_id.h"

#include <algorithm>
#include <charconv>

#include "filter/filter_error.h"

namespace cuptiprof {
namespace {

constexpr size_t kAbsent = std::string_view::npos;
constexpr std::string_view kNvprof = "--kernels filter";
constexpr std::string_view kNcu = "--kernel-id";

bool is_number(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
}

template <class T>
T number(std::string_view s, std::string_view what, std::string_view whole, size_t position) {
  T value{};
  if (std::from_chars(s.data(), s.data() + s.size(), value).ec != std::errc{})
    throw_filter_error(what, whole, position, "number out of range", "IDs are 32-bit, invocations 64-bit.");
  return value;
}

template <class T>
std::string_view decimal(T value, char (&buffer)[24]) noexcept {
  return {buffer, static_cast<size_t>(std::to_chars(buffer, buffer + sizeof buffer, value).ptr - buffer)};
}

}  // namespace

IdMatcher::IdMatcher(std::string_view field, std::string_view what, std::string_view whole, size_t position)
    : x_text(field) {
  if (field.empty()) return;
  if (is_number(field))
    x_id = number<uint32_t>(field, what, whole, position);
  else
    x_regex.emplace(field, what, whole, position);
}

bool IdMatcher::matches(uint32_t id, std::string_view name) const noexcept {
  if (x_id) return *x_id == id;
  if (!x_regex) return true;
  char buffer[24];
  return x_regex->matches_all_of(decimal(id, buffer)) ||
         (!name.empty() && (name == x_text || x_regex->found_in(name)));
}

InvocationMatcher::InvocationMatcher(std::string_view field, std::string_view what, std::string_view whole,
                                     size_t position) {
  if (field.empty()) return;
  if (is_number(field)) {
    x_number = number<uint64_t>(field, what, whole, position);
    if (*x_number == 0)
      throw_filter_error(what, whole, position, "invocation 0", "Invocations count from 1.");
    return;
  }
  const auto wrong = std::find_if_not(field.begin(), field.end(), [](char c) {
    return (c >= '0' && c <= '9') || std::string_view("|.*+?()[]{}^$-,").find(c) != kAbsent;
  });
  if (wrong != field.end())
    throw_filter_error(
        what, whole, position + static_cast<size_t>(wrong - field.begin()),
        "an invocation is a number or a regular expression on numbers",
        "Four fields: context:stream:name:invocation, each may be empty, e.g. '::gemm:1' or ':::2|3'.");
  x_regex.emplace(field, what, whole, position);
}

bool InvocationMatcher::matches(uint64_t invocation) const noexcept {
  if (x_number) return *x_number == invocation;
  if (!x_regex) return true;
  char buffer[24];
  return x_regex->matches_all_of(decimal(invocation, buffer));
}

LaunchId LaunchId::from_nvprof(std::string_view text) {
  LaunchId id;
  id.text = text;
  id.counting = Counting::kNvprof;
  id.name_on_base = false;
  if (text.empty())
    throw_filter_error(kNvprof, text, 0, "empty filter", "Leave it out to select every kernel.");

  // Four fields or a bare regular expression? A kernel's name may hold colons itself ("at::native::vec"), so
  // with more than three the text must begin as only fields can: with an empty or a numeric context.
  const auto colons = std::count(text.begin(), text.end(), ':');
  const size_t first = text.find(':');
  const bool fields = colons == 3 || (colons > 3 && (first == 0 || is_number(text.substr(0, first))));
  if (!fields) {
    id.name = Pattern::regex(Regex(text, kNvprof), text);
    return id;
  }
  const size_t second = text.find(':', first + 1);
  const size_t last = text.rfind(':');
  id.context = IdMatcher(text.substr(0, first), kNvprof, text, 0);
  id.stream = IdMatcher(text.substr(first + 1, second - first - 1), kNvprof, text, first + 1);
  const std::string_view name = text.substr(second + 1, last - second - 1);
  if (!name.empty()) id.name = Pattern::regex(Regex(name, kNvprof, text, second + 1), name);
  id.invocation = InvocationMatcher(text.substr(last + 1), kNvprof, text, last + 1);
  return id;
}

LaunchId LaunchId::from_ncu(std::string_view text) {
  LaunchId id;
  id.text = text;
  const size_t first = text.find(':');
  const size_t second = first == kAbsent ? kAbsent : text.find(':', first + 1);
  size_t begin = second == kAbsent ? kAbsent : second + 1;
  const bool is_regex = begin != kAbsent && text.substr(begin).starts_with(kRegexPrefix);
  if (is_regex) begin += kRegexPrefix.size();
  const size_t last = begin == kAbsent                   ? kAbsent
                      : text.find(':', begin) == kAbsent ? kAbsent
                                                         : text.rfind(':');
  if (last == kAbsent)
    throw_filter_error(
        kNcu, text, text.size(), "fewer than four fields",
        "Write context:stream:[regex:]name:invocation; each field may be empty, e.g. '::foo:2'.");
  id.context = IdMatcher(text.substr(0, first), kNcu, text, 0);
  id.stream = IdMatcher(text.substr(first + 1, second - first - 1), kNcu, text, first + 1);
  const std::string_view name = text.substr(begin, last - begin);
  if (is_regex)
    id.name = Pattern::regex(Regex(name, kNcu, text, begin), name);
  else if (!name.empty())
    id.name = Pattern::literal(name);
  id.invocation = InvocationMatcher(text.substr(last + 1), kNcu, text, last + 1);
  return id;
}

}  // namespace cuptiprof
