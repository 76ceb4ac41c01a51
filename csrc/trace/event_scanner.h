// Events of a trace in Chrome's JSON format, as columns, out of text that comes in pieces: a file may be
// larger than memory. Knows the format and not what events mean.
//
// {"traceEvents": [{"ph": "X", "args": {...}, ...}, ...], ...}, or the array alone. Of an event those fields
// are kept that were asked for, of everything beside the events the text as it stands.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/string_table.h"
#include "trace/event_columns.h"

namespace cuptiprof {

class EventScanner {
 public:
  using Fields = std::vector<std::pair<std::string, FieldKind>>;
  // Names of fields of an event, and of its "args". At most 64 together. Of events whose "cat" is one of
  // `whole_args` the field "args", if it was asked for, is the whole object; of others only what is no
  // object.
  // Events one of whose fields, as (name, text), is among `left_out` have no number and no entries.
  EventScanner(const Fields& fields, const Fields& args, const std::vector<std::string>& whole_args = {},
               const std::vector<std::pair<std::string, std::string>>& left_out = {});

  // The next piece. Throws Error (kResult) where the text is no such trace.
  void feed(std::string_view piece);
  // There is no more. Throws Error where the text ends too early.
  void finish();

  [[nodiscard]] uint32_t events() const noexcept { return static_cast<uint32_t>(x_places.size()); }
  // Of each event how many there were before it in the file, left out or not.
  [[nodiscard]] std::vector<uint32_t>& places() noexcept { return x_places; }
  // Whether there is an array of events at all.
  [[nodiscard]] bool has_array() const noexcept { return x_has_array; }
  // Elements of the array that are no objects.
  [[nodiscard]] uint64_t strangers() const noexcept { return x_strangers; }
  // Those of `fields`, then those of `args`.
  [[nodiscard]] std::vector<FieldColumn>& columns() noexcept { return x_columns; }
  [[nodiscard]] const StringTable& strings() const noexcept { return x_strings; }
  // What stands beside the events, by name: JSON.
  [[nodiscard]] const std::map<std::string, std::string>& beside() const noexcept { return x_beside; }

 private:
  enum class State : uint8_t {
    kStart,
    kFirstKey,    // of the outermost object: or its end
    kKey,         //
    kAfterValue,  // a comma or the end
    kFirstEvent,  // or the end of the array
    kEvent,       //
    kAfterEvent,  // a comma or the end
    kEnd,
  };
  // Names of members, as the file spells them, and the columns of those that are asked for. What follows a
  // name is mostly what followed it last time: then it is neither searched for its end nor looked up.
  class Names {
   public:
    Names() { x_names.emplace_back(); }
    void add(std::string_view name, uint8_t column);
    // Behind the name and its quotes; `last`: which it was, from and to 0 at the beginning. Null: the text
    // ends.
    const char* pass(const char* p, const char* end, uint32_t* last);
    [[nodiscard]] const std::string& text(uint32_t name) const noexcept { return x_names[name].text; }
    [[nodiscard]] uint8_t column(uint32_t name) const noexcept {
      return x_names[name].column;
    }  // + 1; 0: none

   private:
    struct Name {
      std::string text = {};
      uint8_t column = 0;
      uint32_t following = 0;
    };
    static constexpr uint32_t kMost = 4096;  // a file may have any number: others are all one, of no column
    uint32_t find(std::string_view name);
    std::vector<Name> x_names;  // the first one is that of no member
    std::unordered_map<std::string, uint32_t> x_index;
    uint32_t x_other = 0;
  };

  static constexpr size_t kNone = ~size_t{0};

  void take_whole_args() noexcept;
  [[nodiscard]] bool is_left_out() const noexcept;
  // Each returns how far it came; null: the text ends before.
  const char* step(const char* p, const char* end);
  const char* beside_event(const char* p, const char* end);
  const char* event(const char* p, const char* end);
  const char* members(const char* p, const char* end, Names& names, bool outermost);
  [[noreturn]] void fail(const std::string& what) const;

  std::vector<FieldColumn> x_columns;
  Names x_fields, x_args;
  StringTable x_strings;
  std::map<std::string, std::string> x_beside;
  std::vector<std::string> x_whole_args;                   // categories, as tokens
  std::vector<std::pair<size_t, std::string>> x_left_out;  // column and token
  size_t x_category = kNone, x_arguments = kNone;          // columns
  // Of the event that is read, by column; taken over when it is whole.
  std::string_view x_found[64];
  uint64_t x_has = 0;
  std::string_view x_object;  // its args

  State x_state = State::kStart;
  bool x_array = false;  // the events are all there is
  bool x_has_array = false;
  std::string x_rest;     // begins with what was not whole yet
  size_t x_enough = 0;    // bytes of x_rest from which on it is worth another look
  uint64_t x_passed = 0;  // bytes of the text before x_rest
  uint32_t x_all = 0;     // events, left out or not
  std::vector<uint32_t> x_places;
  uint64_t x_strangers = 0;
};

}  // namespace cuptiprof
