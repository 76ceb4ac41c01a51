// Expressions in template arguments, array sizes and decltype.
#include "base/demangle/itanium_demangler.h"

namespace cuptiprof {

std::string ItaniumDemangler::operand(const Piece& piece) {
  return piece.is_simple ? piece.text() : "(" + piece.text() + ")";
}

DemangledPiece ItaniumDemangler::literal() {
  expect("L");
  if (take("_Z") || take("Z")) {
    Piece out = encoding(false);
    expect("E");
    return out;
  }
  const char kind = peek();
  const Piece of = type();
  const bool negative = take("n");
  const size_t begin = x_at;
  while (peek() != 'E' && x_at < x_in.size()) ++x_at;
  const std::string value((negative ? "-" : "") + std::string(x_in.substr(begin, x_at - begin)));
  expect("E");
  if (value.empty()) return of;  // nullptr
  const bool one_letter = of.text().find("::") == std::string::npos;
  if (one_letter) {
    switch (kind) {
      case 'b':
        if (value == "0") return made("false");
        if (value == "1") return made("true");
        break;
      case 'i':
        return made(value);
      case 'j':
        return made(value + "u");
      case 'l':
        return made(value + "l");
      case 'm':
        return made(value + "ul");
      case 'x':
        return made(value + "ll");
      case 'y':
        return made(value + "ull");
      case 'f':
      case 'd':
      case 'e':
        return made("(" + of.text() + ")[" + value + "]");
      default:
        break;
    }
  }
  return made("(" + of.text() + ")" + value);
}

std::string ItaniumDemangler::expressions_until_end() {
  std::vector<Piece> out;
  while (!take("E")) out.push_back(expression());
  return join(out);
}

DemangledPiece ItaniumDemangler::decltype_of() {
  x_at += 2;
  const Piece e = expression();
  expect("E");
  return made("decltype (" + e.text() + ")");
}

DemangledPiece ItaniumDemangler::unresolved_name() {
  const bool destructor = take("dn");
  if (!destructor) take("on");
  const char c = peek();
  Piece base = c >= '0' && c <= '9' ? source_name() : destructor ? type() : made(operator_name(nullptr));
  if (destructor) base = made("~" + base.text());
  if (peek() == 'I') base = made(base.text() + template_args(nullptr));
  base.is_simple = true;
  return base;
}

DemangledPiece ItaniumDemangler::call() {
  expect("cl");
  const Piece function = expression();
  return made(operand(function) + "(" + expressions_until_end() + ")");
}

DemangledPiece ItaniumDemangler::operator_expression() {
  const DemangledOperator* found = find_demangled_operator(x_in.substr(x_at, 2));
  if (!found || found->operands == 0) throw Failed{};
  x_at += 2;
  const std::string_view code = found->code;
  const std::string text = found->text;
  if (found->operands == 1) {
    const bool prefix = (code != "pp" && code != "mm") || take("_");
    const bool function_address = code == "ad" && looking_at("L_Z");
    const Piece of = expression();
    // __cxa_demangle writes a function's address as its qualified name alone.
    if (function_address && x_last_encoding.is_qualified &&
        !(x_last_encoding.is_function && x_last_encoding.is_template))
      return made("&" + x_last_encoding.name);
    if (function_address && !x_last_encoding.is_function && !x_last_encoding.is_template)
      return made("&" + of.text());
    return made(prefix ? text + operand(of) : operand(of) + text);
  }
  const Piece left = expression();
  const Piece right = expression();
  if (found->operands == 3) {
    const Piece otherwise = expression();
    return made(operand(left) + "?" + operand(right) + " : " + operand(otherwise));
  }
  if (code == "ix") return made(operand(left) + "[" + right.text() + "]");
  std::string out = operand(left) + text + operand(right);
  return made(code == "gt" ? "(" + out + ")" : std::move(out));
}

DemangledPiece ItaniumDemangler::expression() {
  const Nesting nesting(*this);
  take("gs");
  const char c = peek();
  if (c == 'L') return literal();
  if (c == 'T') return template_param();
  if (c >= '0' && c <= '9') return unresolved_name();
  if (looking_at("dn") || looking_at("on")) return unresolved_name();
  if (looking_at("fp") || looking_at("fL")) {
    const bool nested = peek(1) == 'L';
    x_at += 2;
    if (nested) {
      digits();
      expect("p");
    }
    while (peek() == 'r' || peek() == 'V' || peek() == 'K') ++x_at;
    Piece out = take("T") ? made("this") : made("{parm#" + std::to_string(sequence_id() + 1) + "}");
    out.is_simple = true;
    return out;
  }
  if (take("sr")) {
    const std::string text = type().text();
    Piece out = made(text + "::" + unresolved_name().text());
    out.is_simple = true;
    return out;
  }
  if (looking_at("cl")) return call();
  if (looking_at("sp")) return pack_expansion(false);
  if (take("sZ")) {
    if (looking_at("T") && !x_expanding) {
      const Piece pack = template_param();
      return made(pack.is_pack ? std::to_string(pack.elements.size()) : "sizeof...(" + pack.text() + ")");
    }
    return made("sizeof...(" + expression().text() + ")");
  }
  if (take("st")) return made("sizeof (" + type().text() + ")");
  if (take("sz")) return made("sizeof (" + expression().text() + ")");
  if (take("at")) return made("alignof (" + type().text() + ")");
  if (take("az")) return made("alignof (" + expression().text() + ")");
  if (take("nx")) return made("noexcept(" + expression().text() + ")");
  if (take("cv")) {
    const Piece to = type();
    if (take("_")) return made("(" + to.text() + ")(" + expressions_until_end() + ")");
    return made("(" + to.text() + ")" + operand(expression()));
  }
  for (const auto& [code, text] : {std::pair("dc", "dynamic_cast"), std::pair("sc", "static_cast"),
                                   std::pair("cc", "const_cast"), std::pair("rc", "reinterpret_cast")}) {
    if (!take(code)) continue;
    const Piece to = type();
    return made(std::string(text) + "<" + to.text() + ">(" + expression().text() + ")");
  }
  if (take("il")) {
    Piece out = made("{" + expressions_until_end() + "}");
    out.is_simple = true;
    return out;
  }
  if (take("tl")) {
    const Piece of = type();
    Piece out = made(of.text() + "{" + expressions_until_end() + "}");
    out.is_simple = true;
    return out;
  }
  return operator_expression();
}

}  // namespace cuptiprof
