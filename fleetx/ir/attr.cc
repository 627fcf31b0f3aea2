#include "fleetx/ir/attr.h"

#include <array>
#include <charconv>
#include <cmath>
#include <ostream>

namespace fleetx::ir {
namespace {

void write(std::ostream& out, bool v) { out << (v ? "true" : "false"); }
void write(std::ostream& out, int64_t v) { out << v; }

void write(std::ostream& out, double v) {
  if (std::isnan(v)) {
    out << "nan";
    return;
  }
  if (std::isinf(v)) {
    out << (v < 0 ? "-inf" : "inf");
    return;
  }
  std::array<char, 40> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), v).ptr;
  const std::string_view digits(text.data(), static_cast<size_t>(end - text.data()));
  out << digits;
  if (digits.find_first_of(".e") == std::string_view::npos)
    out << ".0";  // a float stays a float when read again
}

void write(std::ostream& out, const std::string& v) {
  out << '"';
  for (const char c : v) {
    if (c == '"' || c == '\\')
      out << '\\' << c;
    else if (c == '\n')
      out << "\\n";
    else
      out << c;
  }
  out << '"';
}

template <class T>
void write(std::ostream& out, const std::vector<T>& v) {
  out << '[';
  for (size_t i = 0; i < v.size(); ++i) {
    if (i) out << ',';
    write(out, v[i]);
  }
  out << ']';
}

}  // namespace

std::string_view name_of(AttrType type) {
  constexpr std::array<std::string_view, 7> kNames{
      "bool", "int", "float", "string", "list of ints", "list of floats", "list of strings"};
  return kNames[static_cast<size_t>(type)];
}

std::ostream& operator<<(std::ostream& out, const Attr& attr) {
  std::visit([&](const auto& v) { write(out, v); }, attr.value());
  return out;
}

bool coerce(Attr& attr, AttrType wanted) {
  const AttrType have = attr.type();
  if (have == wanted) return true;
  if (have == AttrType::kInt && wanted == AttrType::kFloat) {
    attr = Attr(static_cast<double>(std::get<int64_t>(attr.value())));
    return true;
  }
  if (have == AttrType::kInts) {
    const Ints ints = std::get<Ints>(attr.value());
    if (wanted == AttrType::kFloats) {
      attr = Attr(Floats(ints.begin(), ints.end()));
      return true;
    }
    if (wanted == AttrType::kStrings && ints.empty()) {
      attr = Attr(Strings{});
      return true;
    }
  }
  return false;
}

}  // namespace fleetx::ir
