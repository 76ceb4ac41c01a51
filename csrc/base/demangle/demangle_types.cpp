// Types, substitutions and template arguments of the Itanium ABI.
#include <utility>

#include "base/demangle/itanium_demangler.h"

namespace cuptiprof {
namespace {

// Builtin types by letter, from 'a'.
constexpr const char* kOneLetter[26] = {
    "signed char", "bool",       "char",          "double",    "long double",
    "float",       "__float128", "unsigned char", "int",       "unsigned int",
    nullptr,       "long",       "unsigned long", "__int128",  "unsigned __int128",
    nullptr,       nullptr,      nullptr,         "short",     "unsigned short",
    nullptr,       "void",       "wchar_t",       "long long", "unsigned long long",
    "..."};
// The same after a 'D'.
constexpr const char* kAfterD[26] = {
    "auto",  nullptr,    "decltype(auto)", "decimal64", "decimal128", "decimal32", nullptr,
    "half",  "char32_t", nullptr,          nullptr,     nullptr,      nullptr,     "decltype(nullptr)",
    nullptr, nullptr,    nullptr,          nullptr,     "char16_t",   nullptr,     "char8_t",
    nullptr, nullptr,    nullptr,          nullptr,     nullptr};

const char* lookup(const char* const (&table)[26], char c) {
  return c >= 'a' && c <= 'z' ? table[c - 'a'] : nullptr;
}

}  // namespace

template <class F>
DemangledPiece ItaniumDemangler::each(Piece piece, F change) {
  if (!piece.is_pack) return change(std::move(piece));
  for (Piece& element : piece.elements) element = change(std::move(element));
  return piece;
}

DemangledPiece ItaniumDemangler::type() {
  const Nesting nesting(*this);
  bool remembered = false;
  const size_t begin = x_at, uses = x_param_uses;
  Piece out = unremembered_type(remembered);
  charge(out);
  if (!remembered) remember(out, x_param_uses != uses ? begin : kNoPack);
  return out;
}

bool ItaniumDemangler::builtin(Piece& out) {
  const char* text = lookup(kOneLetter, peek());
  if (text) {
    ++x_at;
  } else if (peek() == 'D' && (text = lookup(kAfterD, peek(1)))) {
    x_at += 2;
  } else if (take("DF16b")) {
    text = "std::bfloat16_t";
  } else if (take("DF")) {
    out = made("_Float" + std::string(digits()) + (take("x") ? "x" : ""));
    if (!out.left.ends_with('x')) expect("_");
    return true;
  } else {
    return false;
  }
  out = made(text);
  return true;
}

DemangledPiece ItaniumDemangler::pointer_like(Piece to, const char* symbol) {
  return each(std::move(to), [&](Piece p) {
    const bool wrap = p.is_function || p.is_array;
    std::string left = std::move(p.left), right = std::move(p.right);
    if (wrap) {
      left += left.ends_with(' ') ? "(" : " (";
      right = ")" + std::string(p.is_array ? " " : "") + right;
    }
    return made(left + symbol, std::move(right));
  });
}

DemangledPiece ItaniumDemangler::unremembered_type(bool& remembered) {
  Piece out;
  if (builtin(out)) {
    remembered = true;
    return out;
  }
  switch (peek()) {
    case 'r':
    case 'V':
    case 'K': {
      const bool r = take("r"), v = take("V"), k = take("K");
      const auto wanted = static_cast<unsigned char>((k ? 1 : 0) | (v ? 2 : 0) | (r ? 4 : 0));
      return each(type(), [&](Piece p) {
        const unsigned added = wanted & ~p.qualifiers;
        std::string text = added & 1 ? " const" : "";
        if (added & 2) text += " volatile";
        if (added & 4) text += " restrict";
        Piece qualified =
            p.is_array ? made(p.left.substr(0, p.left.size() - 1) + text + " ", p.right)  // "int const [3]"
            : p.is_function ? made(p.left, p.right + text)
                            : made(p.left + text, p.right);
        qualified.is_array = p.is_array;
        qualified.is_function = p.is_function;
        qualified.qualifiers = p.qualifiers | wanted;
        return qualified;
      });
    }
    case 'P':
      ++x_at;
      return pointer_like(type(), "*");
    case 'R':
    case 'O': {
      const bool rvalue = peek() == 'O';
      ++x_at;
      return each(type(), [&](Piece p) {
        // & and anything is &, && and && is &&.
        if (p.reference == '&' || (p.reference == 'r' && rvalue)) return p;
        if (p.reference == 'r') {
          const size_t at = p.left.rfind("&&");
          if (at != std::string::npos) p.left.erase(at, 1);
          p.reference = '&';
          return p;
        }
        Piece made_reference = pointer_like(std::move(p), rvalue ? "&&" : "&");
        made_reference.reference = rvalue ? 'r' : '&';
        return made_reference;
      });
    }
    case 'C':
      ++x_at;
      return each(type(), [&](Piece p) { return made(p.left + " _Complex", p.right); });
    case 'U': {
      if (peek(1) == 'l' || peek(1) == 't') return name(nullptr);
      ++x_at;
      const std::string qualifier = source_name().text();
      const std::string arguments = peek() == 'I' ? template_args(nullptr) : "";
      return each(type(), [&](Piece p) { return made(p.left + " " + qualifier + arguments, p.right); });
    }
    case 'u':
      ++x_at;
      return source_name();
    case 'A':
      return array_type();
    case 'F':
      return function_type();
    case 'M':
      return member_pointer();
    case 'T': {
      if (peek(1) == 's' || peek(1) == 'u' || peek(1) == 'e') {  // struct, union, enum
        x_at += 2;
        return name(nullptr);
      }
      const size_t begin = x_at;
      out = template_param();
      if (peek() != 'I') return out;
      remember(out, begin);
      return with_template_args(std::move(out), nullptr);
    }
    case 'S': {
      if (peek(1) == 't') return name(nullptr);
      out = substitution();
      if (peek() == 'I') return with_template_args(std::move(out), nullptr);
      remembered = true;
      return out;
    }
    case 'D':
      if (peek(1) == 'p') return pack_expansion(true);
      if (peek(1) == 't' || peek(1) == 'T') return decltype_of();
      if (peek(1) == 'o' || peek(1) == 'O' || peek(1) == 'w' || peek(1) == 'x') return function_type();
      if (take("Dv")) {
        const std::string size = peek() == '_' ? (++x_at, expression().text()) : std::string(digits());
        expect("_");
        const Piece element = type();
        return made(element.left + " __vector(" + size + ")", element.right);
      }
      throw Failed{};
    default:
      return name(nullptr);
  }
}

DemangledPiece ItaniumDemangler::function_type() {
  std::string exception;
  if (take("Do")) {
    exception = " noexcept";
  } else if (take("DO")) {
    exception = " noexcept(" + expression().text() + ")";
    expect("E");
  } else if (take("Dw")) {
    exception = " throw(" + join(types_until("E")) + ")";
    expect("E");
  }
  take("Dx");
  expect("F");
  take("Y");  // extern "C"
  const Piece result = type();
  std::string params;
  if (!take("v")) params = join(types_until("E"));
  std::string reference;
  if (looking_at("RE") && take("R"))
    reference = " &";
  else if (looking_at("OE") && take("O"))
    reference = " &&";
  expect("E");
  Piece out = made(result.left + " ", "(" + params + ")" + reference + exception + result.right);
  out.is_function = true;
  return out;
}

DemangledPiece ItaniumDemangler::array_type() {
  expect("A");
  std::string size;
  if (peek() >= '0' && peek() <= '9')
    size = digits();
  else if (peek() != '_')
    size = expression().text();
  expect("_");
  return each(type(), [&](Piece element) {
    std::string left = element.left;
    if (!left.ends_with(' ')) left += ' ';
    Piece out = made(std::move(left), "[" + size + "]" + element.right);
    out.is_array = true;
    return out;
  });
}

DemangledPiece ItaniumDemangler::member_pointer() {
  expect("M");
  const Piece owner = type();
  const Piece member = type();
  const bool wrap = member.is_function || member.is_array;
  std::string left = member.left;
  if (!left.ends_with(' ')) left += ' ';
  return made(left + (wrap ? "(" : "") + owner.text() + "::*", (wrap ? ")" : "") + member.right);
}

// The pattern is read once for every element of the pack that it names.
DemangledPiece ItaniumDemangler::pack_expansion(bool as_type) {
  x_at += 2;  // "Dp" or "sp"
  const auto pattern = [&] { return as_type ? type() : expression(); };
  if (x_expanding) return pattern();
  Piece pack;
  pack.is_pack = true;
  const size_t begin = x_at;
  x_expanding = true;
  x_pack_size = kNoPack;
  x_element = 0;
  Piece first = pattern();
  const size_t size = x_pack_size;
  if (size == kNoPack) {  // no pack in it: one that cannot be known here, "T..."
    x_expanding = false;
    if (first.is_pack) return first;
    first.right += "...";
    return first;
  }
  const size_t substitutions = x_substitutions.size();
  if (size > 0) pack.elements.push_back(std::move(first));
  for (x_element = 1; x_element < size; ++x_element) {
    x_at = begin;
    pack.elements.push_back(pattern());
    charge(pack);
    if (!x_rereading) x_substitutions.resize(substitutions);
  }
  x_expanding = false;
  x_element = 0;
  return pack;
}

DemangledPiece ItaniumDemangler::substitution() {
  expect("S");
  const char c = peek();
  const char* known = c == 'a'   ? "std::allocator"
                      : c == 'b' ? "std::basic_string"
                      : c == 's' ? "std::string"
                      : c == 'i' ? "std::istream"
                      : c == 'o' ? "std::ostream"
                      : c == 'd' ? "std::iostream"
                                 : nullptr;
  if (known) {
    ++x_at;
    Piece out = made(known);
    const std::string tags = abi_tags();
    if (!tags.empty()) {
      out = made(out.left + tags);
      remember(out);
    }
    return out;
  }
  const size_t index = sequence_id();
  if (index >= x_substitutions.size()) throw Failed{};
  if (const size_t begin = x_substitutions[index].dependent_type_at; begin != kNoPack) {
    const size_t after = std::exchange(x_at, begin);
    const bool outer = std::exchange(x_rereading, true);
    const bool template_template = peek() == 'T';  // "T_" alone, though arguments may follow it there
    Piece out = template_template ? template_param() : type();
    x_rereading = outer;
    x_at = after;
    return out;
  }
  charge(x_substitutions[index].piece);
  return x_substitutions[index].piece;
}

DemangledPiece ItaniumDemangler::template_param() {
  expect("T");
  if (peek() == 'L') throw Failed{};
  ++x_param_uses;
  const size_t index = sequence_id();
  if (x_lambda_params > 0) return made("auto:" + std::to_string(index + 1));
  if (index >= x_params.size()) throw Failed{};
  const Piece& param = x_params[index];
  charge(param);
  if (!param.is_pack || !x_expanding) return param;
  x_pack_size = param.elements.size();
  return x_element < param.elements.size() ? param.elements[x_element] : Piece{};
}

DemangledPiece ItaniumDemangler::with_template_args(Piece name, NameInfo* info) {
  const std::string arguments = template_args(info);
  std::string text = name.text();
  if (text.ends_with('<')) text += ' ';
  if (info) info->ends_with_template_args = true;
  return made(text + arguments);
}

// "<int, 4>". With `info` these are the arguments that T_ in what follows stands for.
std::string ItaniumDemangler::template_args(NameInfo* info) {
  const Nesting nesting(*this);
  expect("I");
  // Template arguments are complete in themselves, whatever they stand in.
  const int lambda_params = std::exchange(x_lambda_params, 0);
  std::vector<Piece> arguments;
  if (info) x_params.clear();
  while (!take("E")) {
    arguments.push_back(template_arg());
    if (info) x_params.push_back(arguments.back());
  }
  x_lambda_params = lambda_params;
  std::string text = "<" + join(arguments);
  if (text.ends_with('>')) text += ' ';
  return text + ">";
}

DemangledPiece ItaniumDemangler::template_arg() {
  const Nesting nesting(*this);
  switch (peek()) {
    case 'X': {
      ++x_at;
      Piece out = expression();
      expect("E");
      return out;
    }
    case 'L':
      return literal();
    case 'I':
    case 'J': {
      ++x_at;
      Piece pack;
      pack.is_pack = true;
      while (!take("E")) {
        Piece element = template_arg();
        if (element.is_pack)
          pack.elements.insert(pack.elements.end(), element.elements.begin(), element.elements.end());
        else
          pack.elements.push_back(std::move(element));
      }
      charge(pack);
      return pack;
    }
    default:
      return type();
  }
}

std::vector<DemangledPiece> ItaniumDemangler::types_until(std::string_view stops) {
  std::vector<Piece> out;
  while (x_at < x_in.size() && stops.find(peek()) == std::string_view::npos) {
    if ((looking_at("RE") || looking_at("OE")) && stops == "E") break;  // a function type's ref-qualifier
    out.push_back(type());
  }
  return out;
}

}  // namespace cuptiprof
