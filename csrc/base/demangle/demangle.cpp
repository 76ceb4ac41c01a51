#include "base/demangle/demangle.h"

#include "base/demangle/itanium_demangler.h"

namespace cuptiprof {

std::string demangle(std::string_view mangled) {
  std::string out;
  return ItaniumDemangler(mangled).run(out) ? out : std::string(mangled);
}

bool ItaniumDemangler::run(std::string& out) {
  if (x_in.size() > kMaxInput || !take("_Z")) return false;
  try {
    Piece piece = encoding(true);
    out = piece.text() + clone_suffixes();
  } catch (const Failed&) {
    return false;
  }
  return x_at == x_in.size();
}

bool ItaniumDemangler::take(std::string_view s) {
  if (!looking_at(s)) return false;
  x_at += s.size();
  return true;
}

void ItaniumDemangler::expect(std::string_view s) {
  if (!take(s)) throw Failed{};
}

std::string_view ItaniumDemangler::digits() {
  const size_t begin = x_at;
  while (peek() >= '0' && peek() <= '9') ++x_at;
  return x_in.substr(begin, x_at - begin);
}

size_t ItaniumDemangler::number() {
  const std::string_view text = digits();
  if (text.empty() || text.size() > 9) throw Failed{};
  size_t value = 0;
  for (const char c : text) value = value * 10 + static_cast<size_t>(c - '0');
  return value;
}

size_t ItaniumDemangler::sequence_id() {
  if (take("_")) return 0;
  size_t value = 0;
  while (!take("_")) {
    const char c = peek();
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'A' || c > 'Z')) throw Failed{};
    value = value * 36 + static_cast<size_t>(digit ? c - '0' : c - 'A' + 10);
    if (value > kMaxInput) throw Failed{};
    ++x_at;
  }
  return value + 1;
}

void ItaniumDemangler::charge(const Piece& piece) {
  size_t size = piece.left.size() + piece.right.size();
  for (const Piece& e : piece.elements) size += e.left.size() + e.right.size() + 16;
  x_work += size + 16;
  if (size > kMaxText || x_work > kMaxWork) throw Failed{};
}

DemangledPiece ItaniumDemangler::made(std::string left, std::string right) {
  Piece piece;
  piece.left = std::move(left);
  piece.right = std::move(right);
  charge(piece);
  return piece;
}

void ItaniumDemangler::remember(const Piece& piece, size_t dependent_type_at) {
  charge(piece);
  if (!x_rereading) x_substitutions.push_back({piece, dependent_type_at});
}

void ItaniumDemangler::forget_last() {
  if (!x_rereading) x_substitutions.pop_back();
}

std::string ItaniumDemangler::join(const std::vector<Piece>& pieces) {
  std::string out;
  bool first = true;
  const auto add = [&](const Piece& piece) {
    if (!first) out += ", ";
    first = false;
    out.append(piece.left).append(piece.right);
  };
  // A pack within a pack is flattened one level at a time as it is made, so two levels are all there can be.
  for (const Piece& piece : pieces) {
    if (!piece.is_pack) {
      add(piece);
      continue;
    }
    for (const Piece& element : piece.elements) add(element);
  }
  return out;
}

}  // namespace cuptiprof
