#include "trace/event_scanner.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "trace/json_text.h"

namespace cuptiprof {
namespace {

using json::Malformed;

constexpr size_t kMaxFields = 64;
constexpr size_t kMaxToken = size_t{64} << 20;  // of one event, or of one value beside them
constexpr std::string_view kEvents = "traceEvents", kArguments = "args", kCategory = "cat",
                           kByteOrderMark = "\xef\xbb\xbf";

// Behind `wanted` and the space around it.
const char* pass(const char* p, const char* end, char wanted) {
  p = json::skip_space(p, end);
  if (p == end) return nullptr;
  if (*p != wanted) throw Malformed(std::string("'") + wanted + "' is missing");
  return json::skip_space(p + 1, end);
}

}  // namespace

void EventScanner::Names::add(std::string_view name, uint8_t column) {
  x_names[find(name)].column = static_cast<uint8_t>(column + 1);
}

uint32_t EventScanner::Names::find(std::string_view name) {
  std::string text(name);
  if (const auto found = x_index.find(text); found != x_index.end()) return found->second;
  if (x_names.size() >= kMost) {
    if (x_other == 0) {
      x_other = static_cast<uint32_t>(x_names.size());
      x_names.emplace_back();
    }
    return x_other;
  }
  const auto index = static_cast<uint32_t>(x_names.size());
  x_names.emplace_back().text = text;
  x_index.emplace(std::move(text), index);
  return index;
}

const char* EventScanner::Names::pass(const char* p, const char* end, uint32_t* last) {
  const uint32_t guess = x_names[*last].following;
  const std::string& expected = x_names[guess].text;
  // A name has no quote in it that is not escaped, so that the next one is its end.
  if (guess != 0 && guess != x_other && static_cast<size_t>(end - p) > expected.size() + 1 &&
      p[expected.size() + 1] == '"' && std::memcmp(p + 1, expected.data(), expected.size()) == 0) {
    *last = guess;
    return p + expected.size() + 2;
  }
  const char* name = p;
  p = json::skip_string(p, end);
  if (!p) return nullptr;
  const uint32_t found = find({name + 1, static_cast<size_t>(p - name) - 2});
  x_names[*last].following = found;
  *last = found;
  return p;
}

EventScanner::EventScanner(const Fields& fields, const Fields& args,
                           const std::vector<std::string>& whole_args,
                           const std::vector<std::pair<std::string, std::string>>& left_out) {
  if (fields.size() + args.size() > kMaxFields) throw Error(ErrorKind::kResult, "too many fields of events");
  for (const std::string& category : whole_args) x_whole_args.push_back('"' + category + '"');
  for (const auto& [name, kind] : fields) {
    if (name == kCategory) x_category = x_columns.size();
    if (name == kArguments) x_arguments = x_columns.size();
    for (const auto& [field, text] : left_out)
      if (field == name) x_left_out.emplace_back(x_columns.size(), '"' + text + '"');
    x_fields.add(name, static_cast<uint8_t>(x_columns.size()));
    x_columns.emplace_back().name = name;
    x_columns.back().kind = kind;
  }
  for (const auto& [name, kind] : args) {
    x_args.add(name, static_cast<uint8_t>(x_columns.size()));
    x_columns.emplace_back().name = name;
    x_columns.back().kind = kind;
  }
}

void EventScanner::fail(const std::string& what) const {
  throw Error(ErrorKind::kResult,
              "not a JSON trace (byte " + std::to_string(x_passed) + ", event " + std::to_string(x_all) +
                  ": " + what + ")",
              "is it a torch.profiler trace?");
}

void EventScanner::feed(std::string_view piece) {
  x_rest.append(piece);
  if (x_rest.size() < std::min(x_enough, kMaxToken)) return;
  const char* p = x_rest.data();
  const char* end = p + x_rest.size();
  try {
    while (p != end) {
      const char* next = step(p, end);
      if (!next) break;
      x_passed += static_cast<uint64_t>(next - p);
      p = next;
    }
  } catch (const Malformed& e) {
    fail(e.what());
  }
  const auto whole = static_cast<size_t>(p - x_rest.data());
  x_rest.erase(0, whole);
  if (x_rest.size() > kMaxToken) fail("more than 64 MiB without an end");
  // What did not fit is read from its beginning again: not before there is twice as much of it.
  x_enough = x_rest.size() * 2;
}

void EventScanner::finish() {
  x_enough = 0;
  feed(" ");  // a number at the very end is whole
  if (x_state != State::kEnd) fail("the text ends in the middle: truncated?");
  for (const char c : x_rest)
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') fail("there is more behind the end");
}

const char* EventScanner::step(const char* p, const char* end) {
  const char* begin = p;
  p = json::skip_space(p, end);
  if (p == end) return p == begin ? nullptr : p;
  switch (x_state) {
    case State::kStart:
      if (x_passed == 0 && *p == kByteOrderMark[0]) {
        if (end - p < 3) return nullptr;
        if (std::string_view(p, 3) == kByteOrderMark) return p + 3;
      }
      if (*p != '{' && *p != '[') throw Malformed("neither an object nor an array");
      x_array = *p == '[';
      x_has_array = x_array;
      x_state = x_array ? State::kFirstEvent : State::kFirstKey;
      return p + 1;
    case State::kFirstKey:
      if (*p == '}') {
        x_state = State::kEnd;
        return p + 1;
      }
      [[fallthrough]];
    case State::kKey:
      return beside_event(p, end);
    case State::kAfterValue:
      if (*p != ',' && *p != '}') throw Malformed("',' or '}' is missing");
      x_state = *p == ',' ? State::kKey : State::kEnd;
      return p + 1;
    case State::kFirstEvent:
      if (*p == ']') {
        x_state = x_array ? State::kEnd : State::kAfterValue;
        return p + 1;
      }
      [[fallthrough]];
    case State::kEvent:
      p = event(p, end);
      if (p) x_state = State::kAfterEvent;
      return p;
    case State::kAfterEvent:
      if (*p != ',' && *p != ']') throw Malformed("',' or ']' is missing");
      x_state = *p == ',' ? State::kEvent : x_array ? State::kEnd : State::kAfterValue;
      return p + 1;
    case State::kEnd:
      throw Malformed("there is more behind the end");
  }
  return nullptr;
}

// A member of the outermost object.
const char* EventScanner::beside_event(const char* p, const char* end) {
  if (*p != '"') throw Malformed("a name is missing");
  const char* name = p;
  p = json::skip_string(p, end);
  if (!p) return nullptr;
  const std::string_view key(name + 1, static_cast<size_t>(p - name) - 2);
  p = pass(p, end, ':');
  if (!p || p == end) return nullptr;
  if (key == kEvents && *p == '[') {
    x_state = State::kFirstEvent;
    x_has_array = true;
    return p + 1;
  }
  const char* value = p;
  p = json::skip_value(p, end);
  if (!p) return nullptr;
  x_beside[std::string(key)] = std::string(value, p);
  x_state = State::kAfterValue;
  return p;
}

const char* EventScanner::event(const char* p, const char* end) {
  if (*p != '{') {
    p = json::skip_value(p, end);
    if (p) ++x_strangers;
    return p;
  }
  x_has = 0;
  x_object = {};
  p = members(p, end, x_fields, true);
  if (!p) return nullptr;
  if (x_all == std::numeric_limits<uint32_t>::max()) throw Malformed("too many events");
  const uint32_t place = x_all++;
  if (is_left_out()) return p;
  take_whole_args();
  const uint32_t number = events();
  for (uint64_t left = x_has; left != 0; left &= left - 1) {
    const auto column = static_cast<uint32_t>(std::countr_zero(left));
    x_columns[column].add(number, x_found[column], x_strings);
  }
  x_places.push_back(place);
  return p;
}

bool EventScanner::is_left_out() const noexcept {
  for (const auto& [column, token] : x_left_out)
    if ((x_has >> column & 1) != 0 && x_found[column] == token) return true;
  return false;
}

void EventScanner::take_whole_args() noexcept {
  if (x_whole_args.empty() || x_object.empty() || x_category == kNone || x_arguments == kNone) return;
  if ((x_has >> x_category & 1) == 0) return;
  if (std::find(x_whole_args.begin(), x_whole_args.end(), x_found[x_category]) == x_whole_args.end()) return;
  x_found[x_arguments] = x_object;
  x_has |= uint64_t{1} << x_arguments;
}

const char* EventScanner::members(const char* p, const char* end, Names& names, bool outermost) {
  p = json::skip_space(p + 1, end);
  if (p != end && *p == '}') return p + 1;
  for (uint32_t name = 0;;) {
    if (p == end) return nullptr;
    if (*p != '"') throw Malformed("a name is missing");
    p = names.pass(p, end, &name);
    if (!p) return nullptr;
    p = pass(p, end, ':');
    if (!p || p == end) return nullptr;
    if (outermost && *p == '{' && names.text(name) == kArguments) {
      const char* object = p;
      p = members(p, end, x_args, false);
      if (p) x_object = {object, p};
    } else {
      const char* value = p;
      p = json::skip_value(p, end);
      const uint8_t column = names.column(name);
      if (p && column != 0) {
        x_found[column - 1] = {value, p};
        x_has |= uint64_t{1} << (column - 1);
      }
    }
    if (!p) return nullptr;
    p = json::skip_space(p, end);
    if (p == end) return nullptr;
    if (*p == '}') return p + 1;
    if (*p != ',') throw Malformed("',' or '}' is missing");
    p = json::skip_space(p + 1, end);
  }
}

}  // namespace cuptiprof
