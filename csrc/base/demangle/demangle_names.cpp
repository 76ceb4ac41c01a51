// Encodings and names of the Itanium ABI.
#include <algorithm>

#include "base/demangle/itanium_demangler.h"

namespace cuptiprof {
namespace {

// <operator-name>, sorted by code.
constexpr DemangledOperator kOperators[] = {
    {"aN", "&=", 2},        {"aS", "=", 2},     {"aa", "&&", 2},      {"ad", "&", 1},  {"an", "&", 2},
    {"aw", "co_await ", 1}, {"cl", "()", 0},    {"cm", ",", 2},       {"co", "~", 1},  {"dV", "/=", 2},
    {"da", "delete[] ", 1}, {"de", "*", 1},     {"dl", "delete ", 1}, {"ds", ".*", 2}, {"dt", ".", 2},
    {"dv", "/", 2},         {"eO", "^=", 2},    {"eo", "^", 2},       {"eq", "==", 2}, {"ge", ">=", 2},
    {"gt", ">", 2},         {"ix", "[]", 2},    {"lS", "<<=", 2},     {"le", "<=", 2}, {"ls", "<<", 2},
    {"lt", "<", 2},         {"mI", "-=", 2},    {"mL", "*=", 2},      {"mi", "-", 2},  {"ml", "*", 2},
    {"mm", "--", 1},        {"na", "new[]", 0}, {"ne", "!=", 2},      {"ng", "-", 1},  {"nt", "!", 1},
    {"nw", "new", 0},       {"oR", "|=", 2},    {"oo", "||", 2},      {"or", "|", 2},  {"pL", "+=", 2},
    {"pl", "+", 2},         {"pm", "->*", 2},   {"pp", "++", 1},      {"ps", "+", 1},  {"pt", "->", 2},
    {"qu", "?", 3},         {"rM", "%=", 2},    {"rS", ">>=", 2},     {"rm", "%", 2},  {"rs", ">>", 2},
    {"ss", "<=>", 2},
};

}  // namespace

const DemangledOperator* find_demangled_operator(std::string_view code) {
  const auto* end = std::end(kOperators);
  const auto* found = std::lower_bound(
      std::begin(kOperators), end, code,
      [](const DemangledOperator& o, std::string_view c) { return std::string_view(o.code) < c; });
  return found != end && code == found->code ? found : nullptr;
}

DemangledPiece ItaniumDemangler::encoding(bool top_level) {
  const Nesting nesting(*this);
  std::vector<Piece> outer_params;
  if (!top_level) outer_params.swap(x_params);  // T_ in a local name means its own function's
  NameInfo info;
  const bool qualified = peek() == 'N' || peek() == 'Z';
  Piece out = name(&info);
  auto last = decltype(x_last_encoding){out.text(), qualified, info.ends_with_template_args, false};
  if (x_at != x_in.size() && peek() != 'E' && peek() != '.') {
    Piece result;
    last.is_function = true;
    const bool has_result = info.ends_with_template_args && !info.no_return_type;
    if (has_result) result = type();
    const std::string params = take("v") ? "" : join(types_until("E."));
    std::string text = out.text() + "(" + params + ")" + info.qualifiers;
    // Return types are written at the top level only, as __cxa_demangle does.
    out = has_result && top_level
              ? made(result.left + (result.right.starts_with(")") ? "" : " ") + text, result.right)
              : made(std::move(text));
  }
  if (!top_level) x_params = std::move(outer_params);
  x_last_encoding = std::move(last);
  return out;
}

DemangledPiece ItaniumDemangler::name(NameInfo* info) {
  const Nesting nesting(*this);
  take("L");  // internal linkage
  if (peek() == 'N') return nested_name(info);
  if (peek() == 'Z') return local_name(info);
  if (peek() == 'S' && peek(1) != 't') {
    Piece base = substitution();
    if (peek() != 'I') throw Failed{};
    return with_template_args(std::move(base), info);
  }
  Piece out;
  if (take("St"))
    out = made("std::" + unqualified_name(info, "").text());
  else
    out = unqualified_name(info, "");
  if (peek() != 'I') return out;
  remember(out);
  return with_template_args(std::move(out), info);
}

DemangledPiece ItaniumDemangler::nested_name(NameInfo* info) {
  expect("N");
  std::string qualifiers;
  // In this order in the mangled name, reversed in the text.
  const bool r = take("r"), v = take("V"), k = take("K");
  if (k) qualifiers += " const";
  if (v) qualifiers += " volatile";
  if (r) qualifiers += " restrict";
  if (take("R"))
    qualifiers += " &";
  else if (take("O"))
    qualifiers += " &&";
  Piece so_far;
  std::string last;  // component, for constructors
  bool pushed = false, any = false;
  while (!take("E")) {
    const Nesting nesting(*this);
    pushed = true;
    take("L");
    if (peek() == 'T') {
      so_far = template_param();
    } else if (peek() == 'I') {
      if (!any) throw Failed{};
      so_far = with_template_args(std::move(so_far), info);
      if (info) info->ends_with_template_args = true;
      remember(so_far);
      continue;
    } else if (peek() == 'S' && peek(1) != 't') {
      const char code = peek(1);
      so_far = substitution();
      if (peek() == 'C' || peek() == 'D') {  // a constructor is named like the template, not like the typedef
        const char* of = code == 's'   ? "string"
                         : code == 'i' ? "istream"
                         : code == 'o' ? "ostream"
                         : code == 'd' ? "iostream"
                                       : "";
        if (*of)
          so_far = made(std::string("std::basic_") + of + "<char, std::char_traits<char>" +
                        (code == 's' ? ", std::allocator<char> >" : " >"));
      }
      any = true;
      pushed = false;
      last = so_far.text();
      continue;
    } else if (peek() == 'D' && (peek(1) == 't' || peek(1) == 'T')) {
      so_far = decltype_of();
    } else if (take("St")) {
      so_far = made("std");
      any = true;
      pushed = false;
      continue;
    } else {
      const Piece component = unqualified_name(info, last);
      last = component.text();
      so_far = made(any ? so_far.text() + "::" + last : last);
    }
    any = true;
    if (info) info->ends_with_template_args = false;
    remember(so_far);
  }
  if (!any || !pushed) throw Failed{};
  forget_last();  // the whole name is not a prefix; a type remembers it by itself
  if (info) info->qualifiers = qualifiers;
  return so_far;
}

DemangledPiece ItaniumDemangler::local_name(NameInfo* info) {
  expect("Z");
  const Piece function = encoding(false);
  expect("E");
  if (take("s")) {
    discriminator();
    return made(function.text() + "::string literal");
  }
  std::string text = function.text();
  if (take("d")) {
    const size_t argument = peek() == '_' ? 0 : number() + 1;
    expect("_");
    text += "::{default arg#" + std::to_string(argument + 1) + "}";
  }
  const Piece entity = name(info);
  discriminator();
  return made(text + "::" + entity.text());
}

void ItaniumDemangler::discriminator() {
  if (peek() != '_') return;
  if (peek(1) == '_') {
    x_at += 2;
    digits();
    take("_");
  } else if (peek(1) >= '0' && peek(1) <= '9') {
    x_at += 2;
  }
}

DemangledPiece ItaniumDemangler::source_name() {
  const size_t length = number();
  if (length == 0 || length > x_in.size() - x_at) throw Failed{};
  const std::string_view text = x_in.substr(x_at, length);
  x_at += length;
  const bool anonymous = text.size() >= 10 && text.starts_with("_GLOBAL_") &&
                         (text[8] == '_' || text[8] == '.' || text[8] == '$') && text[9] == 'N';
  return made(anonymous ? "(anonymous namespace)" : std::string(text));
}

DemangledPiece ItaniumDemangler::unnamed_type() {
  if (take("Ut")) {
    const size_t n = sequence_id();
    return made("{unnamed type#" + std::to_string(n + 1) + "}");
  }
  expect("Ul");
  ++x_lambda_params;
  const std::string params = take("v") ? "" : join(types_until("E"));
  --x_lambda_params;
  expect("E");
  const size_t n = sequence_id();
  return made("{lambda(" + params + ")#" + std::to_string(n + 1) + "}");
}

DemangledPiece ItaniumDemangler::unqualified_name(NameInfo* info, const std::string& enclosing) {
  const char c = peek();
  Piece out;
  if (c >= '0' && c <= '9') {
    out = source_name();
  } else if (c == 'U') {
    out = unnamed_type();
  } else if (c == 'C' || (c == 'D' && peek(1) >= '0' && peek(1) <= '5')) {
    // A constructor or destructor is called like its class, without the template arguments.
    ++x_at;
    if (c == 'C') take("I");
    number();
    if (enclosing.empty() || !info) throw Failed{};
    info->no_return_type = true;
    const std::string plain = enclosing.substr(0, enclosing.find_first_of("<["));
    const size_t scope = plain.rfind("::");
    out = made((c == 'D' ? "~" : "") + (scope == std::string::npos ? plain : plain.substr(scope + 2)));
  } else if (c >= 'a' && c <= 'z') {
    out = made(operator_name(info));
  } else {
    throw Failed{};
  }
  const std::string tags = abi_tags();
  return tags.empty() ? out : made(out.text() + tags);
}

std::string ItaniumDemangler::abi_tags() {
  std::string out;
  while (take("B")) out += "[abi:" + source_name().text() + "]";
  return out;
}

std::string ItaniumDemangler::operator_name(NameInfo* info) {
  if (take("cv")) {
    if (info) info->no_return_type = true;
    return "operator " + type().text();
  }
  if (take("li")) return "operator\"\" " + source_name().text();
  const DemangledOperator* found = find_demangled_operator(x_in.substr(x_at, 2));
  if (!found) throw Failed{};
  x_at += 2;
  std::string text = found->text;
  while (text.ends_with(' ')) text.pop_back();
  const bool word = text[0] >= 'a' && text[0] <= 'z';
  return (word ? "operator " : "operator") + text;
}

std::string ItaniumDemangler::clone_suffixes() {
  // ".constprop.0", ".kd": letters, then any numbers.
  std::string out;
  const auto in = [&](char from, char to, size_t ahead) { return peek(ahead) >= from && peek(ahead) <= to; };
  const auto letter = [&](size_t ahead) {
    return in('a', 'z', ahead) || in('A', 'Z', ahead) || peek(ahead) == '_';
  };
  while (peek() == '.' && (letter(1) || in('0', '9', 1))) {
    const size_t begin = x_at++;
    if (letter(0)) {
      while (letter(0)) ++x_at;
    } else {
      digits();
    }
    while (peek() == '.' && in('0', '9', 1)) {
      ++x_at;
      digits();
    }
    out.append(" [clone ").append(x_in.substr(begin, x_at - begin)).append("]");
  }
  return out;
}

}  // namespace cuptiprof
