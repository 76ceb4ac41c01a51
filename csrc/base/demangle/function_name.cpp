// Takes a demangled signature apart without a C++ parser: only the nesting of brackets and the few places
// where a bracket is part of a name ("(anonymous namespace)", "operator<", "{lambda(int)#1}").
#include <string>
#include <string_view>
#include <vector>

#include "base/demangle/demangle.h"

namespace cuptiprof {
namespace {

constexpr std::string_view kAnonymous = "(anonymous namespace)";
constexpr size_t kNone = std::string_view::npos;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         (c & 0x80);
}

// Whether the '<' or '>' at `i` is an operator of an expression, "(a)<(b)" or "(a)>=(b)" or "x->y", and no
// bracket.
bool is_comparison(std::string_view s, size_t i) {
  const char before = i > 0 ? s[i - 1] : '\0', after = i + 1 < s.size() ? s[i + 1] : '\0';
  if (s[i] == '>') return before == '-' || (before == ')' && after == '=');
  return before == ')' && (after == '(' || after == '=') && !s.substr(0, i).ends_with("operator()");
}

// One past the bracket that closes the one at `i`; npos when none does. `stack` is scratch space.
size_t skip_group(std::string_view s, size_t i, std::vector<char>& stack) {
  stack.clear();
  for (; i < s.size(); ++i) {
    const char c = s[i];
    if (c == '(' || c == '[' || c == '{' || (c == '<' && !is_comparison(s, i))) {
      stack.push_back(c);
    } else if (c == '>') {
      if (!is_comparison(s, i) && !stack.empty() && stack.back() == '<') stack.pop_back();
    } else if (c == ')' || c == ']' || c == '}') {
      const char open = c == ')' ? '(' : c == ']' ? '[' : '{';
      while (!stack.empty() && stack.back() != open) stack.pop_back();
      if (stack.empty()) return kNone;
      stack.pop_back();
    }
    if (stack.empty()) return i + 1;
  }
  return kNone;
}

// One past the symbol of an operator function whose "operator" ends at `i`, or `i` when it is no operator
// symbol.
size_t skip_operator(std::string_view s, size_t i) {
  static constexpr std::string_view kSymbols[] = {
      "()", "[]", "<=>", "<<=", ">>=", "->*", "<<", ">>", "->", "<=", ">=", "==", "!=",
      "&&", "||", "++",  "--",  "+=",  "-=",  "*=", "/=", "%=", "^=", "&=", "|=", "<",
      ">",  "+",  "-",   "*",   "/",   "%",   "^",  "&",  "|",  "~",  "!",  "=",  ","};
  for (const std::string_view symbol : kSymbols)
    if (s.substr(i).starts_with(symbol)) return i + symbol.size();
  if (i < s.size() && s[i] == ' ') {  // operator new, operator int
    const size_t end = s.find('(', i);
    return end == kNone ? s.size() : end;
  }
  return i;
}

struct Parts {
  std::vector<std::string_view>
      segments;  // of the qualified name, outermost first, without template arguments
  bool is_function = false;
};

Parts take_apart(std::string_view s) {
  Parts parts;
  std::vector<char> stack;
  size_t begin = 0;    // of the segment at hand
  size_t end = kNone;  // where its template arguments begin
  const auto finish_segment = [&](size_t at) {
    const std::string_view segment = s.substr(begin, (end == kNone ? at : end) - begin);
    if (!segment.empty()) parts.segments.push_back(segment);
    end = kNone;
  };
  const auto restart = [&](size_t at) {  // what came before was the return type
    parts.segments.clear();
    begin = at;
    end = kNone;
  };
  for (size_t i = 0; i < s.size();) {
    const char c = s[i];
    if (i == begin && s.substr(i).starts_with("operator") && (i + 8 >= s.size() || !is_word(s[i + 8]))) {
      i = skip_operator(s, i + 8);
      if (s.substr(i).starts_with(" <")) end = i++;  // "operator<< <int>"
    } else if (c == ':' && i + 1 < s.size() && s[i + 1] == ':') {
      finish_segment(i);
      i += 2;
      begin = i;
    } else if (c == ' ') {
      restart(++i);
    } else if (c == '(' && s.substr(i).starts_with(kAnonymous)) {
      i += kAnonymous.size();
    } else if (c == '<' || c == '[' || c == '{') {
      if (c == '<' && end == kNone && i > begin) end = i;
      i = skip_group(s, i, stack);
      if (i == kNone) return parts;
    } else if (c == '(') {
      if (begin == i && parts.segments.empty() && i + 1 < s.size() && (s[i + 1] == '*' || s[i + 1] == '&')) {
        i += 2;  // "void (*make(bool))(int)": a function that returns a pointer to one
        begin = i;
        continue;
      }
      const size_t after = skip_group(s, i, stack);
      if (after == kNone) return parts;
      if (begin == i && parts.segments.empty()) {  // "decltype (a + b) f(int)"
        i = after;
        continue;
      }
      // Parameters of the function itself, or of one that encloses a local class or lambda: "f(int)
      // const::{lambda()#1}".
      size_t next = after;
      for (const std::string_view word : {" const", " volatile", " &&", " &", "&&", "&"})
        if (s.substr(next).starts_with(word)) next += word.size();
      finish_segment(i);
      if (s.substr(next).starts_with("::")) {
        parts.is_function = true;
        i = next + 2;
        begin = i;
        continue;
      }
      parts.is_function = !parts.segments.empty();
      return parts;
    } else {
      ++i;
    }
  }
  finish_segment(s.size());
  return parts;
}

// Spaces mean a return type only in a signature; a plain name ("Memset (Device)", an operator of a trace) is
// left alone.
bool is_plain(std::string_view s, const Parts& parts) {
  return parts.segments.empty() || (!parts.is_function && s.find(' ') != kNone && s.find('<') == kNone);
}

}  // namespace

std::string function_base(std::string_view demangled) {
  const Parts parts = take_apart(demangled);
  return std::string(is_plain(demangled, parts) ? demangled : parts.segments.back());
}

std::string qualified_name(std::string_view demangled) {
  const Parts parts = take_apart(demangled);
  if (is_plain(demangled, parts)) return std::string(demangled);
  std::string out;
  for (const std::string_view segment : parts.segments) {
    if (!out.empty()) out += "::";
    out += segment;
  }
  return out;
}

}  // namespace cuptiprof
