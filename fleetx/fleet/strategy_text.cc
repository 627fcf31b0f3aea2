// DistributedStrategy in the text format of protobuf, which the original saves and loads:
//
//   amp: true
//   recompute_configs {
//     checkpoints: "res2a"
//     checkpoints: "res3a"
//   }
//
// Also read: comments (#), lists ([1, 2]), < > for { }, ',' or ';' between fields, 'text' and
// "te" "xt", escapes, hexadecimal and octal numbers. Depth is bounded by the description of the
// fields, so that no input can make the parser recurse.
#include <charconv>
#include <map>

#include "fleetx/base/error.h"
#include "fleetx/base/file.h"
#include "fleetx/base/names.h"
#include "fleetx/fleet/strategy_fields.h"

namespace fleetx::fleet {
namespace {

// --- writing -------------------------------------------------------------------------------------

void write_value(std::string& out, const std::string& text) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte >= 0x7f) {
      for (const char part :
           {'\\', char('0' + byte / 64), char('0' + byte / 8 % 8), char('0' + byte % 8)})
        out += part;
    } else {
      out += c;
    }
  }
  out += '"';
}
void write_value(std::string& out, double value) { out += number_text(value); }
void write_value(std::string& out, int64_t value) { out += std::to_string(value); }
void write_value(std::string& out, int value) { out += std::to_string(value); }
void write_value(std::string& out, bool value) { out += value ? "true" : "false"; }

void write_field(std::string& out, std::string_view indent, const Field& field) {
  const auto line = [&](const auto& value) {
    out += str(indent, field.name, ": ");
    write_value(out, value);
    out += '\n';
  };
  std::visit(
      [&]<class T>(const T* value) {
        if constexpr (std::is_same_v<T, DistributedStrategy::Mode>) {
          out += str(indent, field.name, ": ", to_string(*value), "\n");
        } else if constexpr (kIsList<T>) {
          for (const auto& entry : *value) line(entry);
        } else {
          line(*value);
        }
      },
      field.ref);
}

// --- reading -------------------------------------------------------------------------------------

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
// The value of a digit up to 16, or -1.
int digit_of(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view source, const std::vector<Group>& groups)
      : rest_(text), source_(source), groups_(groups) {}

  void run() {
    while (peek() != '\0') top_entry();
    check(rest_.empty(), "a zero byte");
  }

 private:
  template <class... Parts>
  void check(bool ok, const Parts&... message) const {
    check_arg(ok, source_, ":", line_, ": ", message...);
  }

  // --- characters and words ---
  char front() const { return rest_.empty() ? '\0' : rest_.front(); }
  char take() {
    const char c = front();
    if (c == '\n') ++line_;
    if (!rest_.empty()) rest_.remove_prefix(1);
    return c;
  }
  // The next character that means something; '\0' at the end.
  char peek() {
    while (!rest_.empty()) {
      if (front() == '#')
        while (!rest_.empty() && front() != '\n') take();
      else if (front() == ' ' || (front() >= '\t' && front() <= '\r'))
        take();
      else
        break;
    }
    return front();
  }
  bool accept(char c) {
    if (c == '\0' || peek() != c) return false;
    take();
    return true;
  }
  std::string here() const {
    return rest_.empty() ? "the end"
                         : str("'", rest_.substr(0, std::min<size_t>(20, rest_.find('\n'))), "'");
  }
  // Letters, digits and what numbers are made of.
  std::string word() {
    peek();
    std::string result;
    while (is_letter(front()) || is_digit(front()) || front() == '.' ||
           ((front() == '+' || front() == '-') &&
            (result.empty() || result.back() == 'e' || result.back() == 'E')))
      result += take();
    return result;
  }
  std::string name() {
    const std::string result = word();
    check(!result.empty() && is_letter(result.front()) &&
              result.find_first_of(".+-") == std::string::npos,
          "expected the name of a field before ", here());
    return result;
  }

  // --- values ---
  char escaped() {
    const char c = take();
    const auto number = [&](int base, int most, int value) {
      for (int n = 0; n < most && digit_of(front()) >= 0 && digit_of(front()) < base; ++n)
        value = value * base + digit_of(take());
      check(value <= 255, "an escape stands for more than a byte");
      return static_cast<char>(value);
    };
    if (c >= '0' && c <= '7') return number(8, 2, c - '0');
    if (c == 'x' || c == 'X') {
      check(digit_of(front()) >= 0, "\\x without digits");
      return number(16, 2, 0);
    }
    constexpr std::string_view kFrom = "abfnrtv\\'\"?", kTo = "\a\b\f\n\r\t\v\\'\"?";
    const size_t index = c == '\0' ? kFrom.npos : kFrom.find(c);
    check(index != kFrom.npos, "unknown escape '\\", c, "'");
    return kTo[index];
  }
  std::string quoted() {
    std::string result;
    check(peek() == '"' || peek() == '\'', "expected a quoted text before ", here());
    while (peek() == '"' || peek() == '\'') {  // several in a row are one
      const char end = take();
      while (front() != end) {
        check(!rest_.empty() && front() != '\n', "a quoted text has no end");
        const char c = take();
        result += c == '\\' ? escaped() : c;
      }
      take();
    }
    return result;
  }
  bool boolean() {
    const std::string text = word();
    for (const std::string_view yes : {"true", "True", "t", "1"})
      if (text == yes) return true;
    for (const std::string_view no : {"false", "False", "f", "0"})
      if (text == no) return false;
    check(false, "expected true or false, got '", text, "'");
    return false;
  }
  int64_t integer() {
    const std::string text = word();
    const bool negative = text.starts_with('-');
    std::string_view digits = std::string_view(text).substr(negative);
    int base = 10;
    if (digits.starts_with("0x") || digits.starts_with("0X")) {
      base = 16;
      digits.remove_prefix(2);
    } else if (digits.size() > 1 && digits.starts_with('0')) {
      base = 8;
    }
    int64_t number = 0;
    const char* end = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), end, number, base);
    check(result.ec == std::errc{} && result.ptr == end && number >= 0,
          "expected a whole number, got '", text, "'");
    return negative ? -number : number;
  }
  double real() {
    const std::string text = word();
    const bool negative = text.starts_with('-');
    std::string_view digits = std::string_view(text).substr(negative);
    double number = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    const std::string_view left = digits.substr(static_cast<size_t>(result.ptr - digits.data()));
    check(result.ec == std::errc{} && (left.empty() || left == "f" || left == "F") &&
              !digits.starts_with('-'),
          "expected a number, got '", text, "'");
    return negative ? -number : number;
  }
  template <class T>
  T scalar() {
    if constexpr (std::is_same_v<T, bool>) return boolean();
    if constexpr (std::is_same_v<T, int64_t>) return integer();
    if constexpr (std::is_same_v<T, double>) return real();
    if constexpr (std::is_same_v<T, std::string>) return quoted();
  }
  ir::Attr mode() {
    std::string text = word();
    if (text.size() == 1 && text[0] >= '1' && text[0] <= '4')
      text = to_string(static_cast<DistributedStrategy::Mode>(text[0] - '0'));
    return text;
  }
  // One entry, or several in brackets.
  template <class T>
  void append(std::vector<T>& list) {
    if (!accept('[')) {
      list.push_back(scalar<T>());
    } else if (!accept(']')) {
      do list.push_back(scalar<T>());
      while (accept(','));
      check(accept(']'), "expected ']' before ", here());
    }
  }

  // --- fields ---
  // A list may come again and goes on then; what is not in the text stays as it was.
  void field_entry(const Group& group, const std::string& word) {
    const Field* field = group.find(word);
    if (field == nullptr)
      check(false, "unknown field '", word, "'", group.name.empty() ? "" : " of ", group.name,
            did_you_mean(word, group.name.empty() ? all_names(groups_) : group.names()));
    const std::string name = full_name(group, *field);
    const auto inserted = seen_.emplace(name, line_);
    const bool first = inserted.second;
    check(accept(':'), "expected ':' after '", name, "'");
    const std::string who = str(source_, ":", line_, ": ", name);
    std::visit(
        [&]<class T>(T* to) {
          if constexpr (kIsList<T>) {
            if (first) to->clear();
            append(*to);
            return;
          }
          check(first, "'", name, "' is there already, in line ", inserted.first->second);
          if constexpr (std::is_same_v<T, DistributedStrategy::Mode>)
            write(*field, mode(), who);
          else if constexpr (std::is_same_v<T, int>)
            write(*field, integer(), who);
          else if constexpr (!kIsList<T>)
            write(*field, scalar<T>(), who);
        },
        field->ref);
    if (!accept(',')) accept(';');
  }
  void top_entry() {
    const std::string word = name();
    const Group* group = find_group(groups_, word);
    if (group == nullptr) return field_entry(groups_.front(), word);
    const auto [entry, first] = seen_.emplace(word, line_);
    check(first, "'", word, "' is there already, in line ", entry->second);
    accept(':');
    const char end = accept('{') ? '}' : '>';
    check(end == '}' || accept('<'), "expected '{' after '", word, "'");
    const int begin = line_;
    while (!accept(end)) {
      check(peek() != '\0', "'", word, "' of line ", begin, " has no end");
      field_entry(*group, name());
    }
    if (!accept(',')) accept(';');
  }

  std::string_view rest_;
  const std::string_view source_;
  const std::vector<Group>& groups_;
  int line_ = 1;
  std::map<std::string, int> seen_;  // names with the line where they stand first
};

}  // namespace

std::string DistributedStrategy::to_text() const {
  std::string text;
  std::string_view open;  // the group being written
  const auto close = [&] { text += open.empty() ? "" : "}\n"; };
  each_changed(*this, [&](const Group& group, const Field& field) {
    if (group.name != open) {
      close();
      open = group.name;
      text += str(open, " {\n");
    }
    write_field(text, open.empty() ? "" : "  ", field);
  });
  close();
  return text;
}

void DistributedStrategy::merge_text(std::string_view text, std::string_view source) {
  DistributedStrategy next = *this;
  const std::vector<Group> groups = describe(next);
  Parser(text, source, groups).run();
  *this = std::move(next);
}

void DistributedStrategy::save_text(const std::string& path) const { write_file(path, to_text()); }

void DistributedStrategy::load_text(const std::string& path) {
  constexpr uint64_t kMost = 16 << 20;
  merge_text(read_file(path, kMost), path);
}

}  // namespace fleetx::fleet
