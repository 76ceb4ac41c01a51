#include "trace/event_scanner.h"

#include <string>
#include <vector>

#include "base/error.h"
#include "doctest/doctest.h"

namespace cuptiprof {
namespace {

const EventScanner::Fields kFields = {{"ph", FieldKind::kText}, {"ts", FieldKind::kDecimal}};
const EventScanner::Fields kArgs = {{"correlation", FieldKind::kInteger}};

// In pieces of so many bytes.
EventScanner scanned(const std::string& text, size_t piece) {
  EventScanner s(kFields, kArgs);
  for (size_t i = 0; i < text.size(); i += piece) s.feed(std::string_view(text).substr(i, piece));
  s.finish();
  return s;
}

std::string said(const EventScanner& s, const FieldColumn& c) {
  std::string out;
  for (size_t i = 0; i < c.texts.size(); ++i)
    out += std::to_string(c.text_events[i]) + "=" + std::string(s.strings().at(c.texts[i])) + " ";
  for (size_t i = 0; i < c.numbers.size(); ++i)
    out += std::to_string(c.number_events[i]) + "=" + std::to_string(c.numbers[i]) + " ";
  return out;
}

}  // namespace

TEST_CASE("events are the same in pieces of any size") {
  const std::string text = R"({"a": {"b": "}]\\"}, "traceEvents": [
    {"ph": "X", "ts": 1684875735437453.123, "args": {"correlation": 7, "x": [1, {"y": "\"}"}]}},
    {"args": {}, "ph": "\u0058", "ts": 12}, 5, {"ts": -0.5, "ts": 1e3, "args": {"correlation": "8"}}, {}
  ], "end": 1.5e-3})";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    EventScanner s = scanned(text, piece);
    REQUIRE(s.events() == 4);
    CHECK(s.strangers() == 1);
    CHECK(said(s, s.columns()[0]) == "0=\"X\" 1=\"\\u0058\" ");
    CHECK(said(s, s.columns()[1]) == "2=1e3 0=1684875735437453123 1=12000 ");
    CHECK(said(s, s.columns()[2]) == "2=\"8\" 0=7 ");
    CHECK(s.beside().at("a") == R"({"b": "}]\\"})");
    CHECK(s.beside().at("end") == "1.5e-3");
  }
}

TEST_CASE("an array alone is a trace, and so is one with a byte order mark") {
  for (const std::string mark : {"", "\xef\xbb\xbf"})
    for (size_t piece = 1; piece < 8; ++piece) {
      CHECK(scanned(mark + R"([{"ph": "X"}, {"ph": "X"}] )", piece).events() == 2);
      CHECK(scanned(mark + "{}", piece).events() == 0);
      CHECK(scanned(mark + R"( {"traceEvents": []}
)",
                    piece)
                .events() == 0);
    }
}

TEST_CASE("what is no trace is refused, in pieces too") {
  const std::vector<std::string> wrong = {
      "",
      "7",
      "nonsense",
      "{",
      "[{",
      R"([{"ph"}])",
      "[{}",
      "[{} {}]",
      R"({"a" 1})",
      R"({"a": 1 "b"})",
      "[{]}",
      R"([{"a": }])",
      R"({"a": "b})",
      "[]]",
      "{} x",
      "[{},",
      R"({7: 1})",
      R"([{"a":)",
      "[\"a\\",
      "\xef\xbb\xbf",
      "\xef[]",
      R"([{"args": {"correlation": 7])",
  };
  for (const std::string& text : wrong)
    for (const size_t piece : {size_t{1}, size_t{2}, size_t{100}}) {
      INFO(text);
      CHECK_THROWS_AS(scanned(text, piece), Error);
    }
  CHECK_THROWS_AS(scanned("[" + std::string(1000, '[') + std::string(1000, ']') + "]", 100), Error);
}

TEST_CASE("numbers are exact or text") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"0", "0=0 "},
      {"-0.001", "0=-1 "},
      {"0.0019", "0=1 "},
      {"9223372036854774.999", "0=9223372036854774999 "},
      {"9223372036854775.000", "0=9223372036854775.000 "},
      {"1234567890123456789012", "0=1234567890123456789012 "},
      {"1.", "0=1000 "},
      {"NaN", "0=NaN "},
      {"\"1\"", "0=\"1\" "},
      {"null", "0=null "},
  };
  for (const auto& [token, expected] : cases) {
    EventScanner s = scanned(R"([{"ts": )" + token + "}]", 3);
    INFO(token);
    CHECK(said(s, s.columns()[1]) == expected);
  }
}

}  // namespace cuptiprof
