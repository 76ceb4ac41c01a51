// A demangler of the Itanium C++ ABI, for names of kernels.
//
// Why not abi::__cxa_demangle: libstdc++ refuses names beyond 1,024 characters (CUTLASS kernels have several
// thousand), and its output can grow exponentially with the input (210 characters -> 35 MB), which a hostile
// trace may use. Here nesting, output and total work are bounded. The text is that of __cxa_demangle.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace cuptiprof {

// A type, name or template argument as text around the place where a declarator goes: "void (*" + ")(int)".
struct DemangledPiece {
  std::string left, right;
  char reference = 0;            // '&' or 'r' (&&): for collapsing
  unsigned char qualifiers = 0;  // 1 const, 2 volatile, 4 restrict: written once, however often they apply
  bool is_function = false;      // pointers to it need parentheses
  bool is_array = false;
  bool is_pack = false;    // stands for `elements`
  bool is_simple = false;  // an expression that needs no parentheses
  std::vector<DemangledPiece> elements;

  [[nodiscard]] std::string text() const { return left + right; }
};

class ItaniumDemangler {
 public:
  explicit ItaniumDemangler(std::string_view mangled) : x_in(mangled) {}
  // False when the name is malformed, uses something unknown or exceeds the bounds.
  [[nodiscard]] bool run(std::string& out);

  static constexpr size_t kMaxInput = 32768;
  static constexpr size_t kMaxText = 65536;      // bytes of any one piece
  static constexpr size_t kMaxWork = 16u << 20;  // bytes of text made in all
  static constexpr int kMaxDepth =
      512;  // productions; a level of template arguments takes 4, all of it < 1 MiB of stack

 private:
  using Piece = DemangledPiece;
  struct Failed {};
  struct NameInfo {
    bool ends_with_template_args = false;
    bool no_return_type = false;  // constructor, destructor, conversion
    std::string qualifiers;       // " const &"
  };
  class Nesting {
   public:
    explicit Nesting(ItaniumDemangler& d) : x_d(d) {
      if (++x_d.x_depth > kMaxDepth) throw Failed{};
    }
    ~Nesting() { --x_d.x_depth; }

   private:
    ItaniumDemangler& x_d;
  };

  // Input.
  [[nodiscard]] char peek(size_t ahead = 0) const {
    return x_at + ahead < x_in.size() ? x_in[x_at + ahead] : '\0';
  }
  [[nodiscard]] bool looking_at(std::string_view s) const { return x_in.substr(x_at).starts_with(s); }
  bool take(std::string_view s);
  void expect(std::string_view s);
  std::string_view digits();
  size_t number();
  size_t sequence_id();  // base 36, up to and with '_': "_" is 0, "0_" is 1

  // Output under the bounds.
  void charge(const Piece& piece);
  Piece made(std::string left, std::string right = {});
  void remember(const Piece& piece, size_t dependent_type_at = static_cast<size_t>(-1));
  void forget_last();
  static std::string join(const std::vector<Piece>& pieces);
  template <class F>
  Piece each(Piece piece, F change);

  // Names (demangle_names.cpp).
  Piece encoding(bool top_level);
  Piece name(NameInfo* info);
  Piece nested_name(NameInfo* info);
  Piece local_name(NameInfo* info);
  Piece unqualified_name(NameInfo* info, const std::string& enclosing);
  Piece source_name();
  Piece unnamed_type();
  std::string operator_name(NameInfo* info);
  std::string abi_tags();
  void discriminator();
  std::string clone_suffixes();

  // Types (demangle_types.cpp).
  Piece type();
  Piece unremembered_type(bool& remembered);
  bool builtin(Piece& out);
  Piece function_type();
  Piece array_type();
  Piece member_pointer();
  Piece pack_expansion(bool as_type);
  Piece substitution();
  Piece template_param();
  std::string template_args(NameInfo* info);
  Piece template_arg();
  std::vector<Piece> types_until(std::string_view stops);
  Piece with_template_args(Piece name, NameInfo* info);
  Piece pointer_like(Piece to, const char* symbol);

  // Expressions (demangle_expressions.cpp).
  Piece expression();
  Piece literal();
  Piece operator_expression();
  Piece unresolved_name();
  Piece call();
  Piece decltype_of();
  std::string expressions_until_end();
  static std::string operand(const Piece& piece);

  std::string_view x_in;
  size_t x_at = 0;
  int x_depth = 0;
  size_t x_work = 0;
  struct {
    std::string name;
    bool is_qualified = false, is_template = false, is_function = false;
  } x_last_encoding;
  int x_lambda_params = 0;  // > 0: T_ is an auto parameter
  // A type that names a template parameter means another thing where the parameter does (a generic lambda's
  // operator()), so a substitution by it reads its text again.
  struct Substitution {
    Piece piece;
    size_t dependent_type_at = kNoPack;
  };
  static constexpr size_t kNoPack = static_cast<size_t>(-1);
  std::vector<Substitution> x_substitutions;
  bool x_rereading = false;  // substitutions are all known
  size_t x_param_uses = 0;
  std::vector<Piece> x_params;  // what T_, T0_, ... stand for
  // In a pack expansion: which element T_ stands for, and how many there are (kNoPack: none seen yet).
  bool x_expanding = false;
  size_t x_element = 0, x_pack_size = kNoPack;
};

// Operator names by their two-letter code, for names and expressions; operands: 1, 2 or 3.
struct DemangledOperator {
  char code[3];
  const char* text;
  int operands;
};
const DemangledOperator* find_demangled_operator(std::string_view code);

}  // namespace cuptiprof
