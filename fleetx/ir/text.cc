#include "fleetx/ir/text.h"

#include <charconv>
#include <sstream>

#include "fleetx/ir/rewriter.h"
#include "fleetx/ir/verifier.h"

namespace fleetx::ir {
namespace {

// '@' is common in names (x@GRAD) and only special at the start of a location, so it does not force
// quotes.
bool needs_quotes(const std::string& name) {
  if (name.empty() || name == "_" || name.front() == '@') return name != "@step@";
  return name.find_first_of(" \t\r\n,()[]{}=:#\"\\") != std::string::npos;
}

void write_name(std::ostream& out, const std::string& name) {
  if (needs_quotes(name))
    out << Attr(name);
  else
    out << name;
}

void write_attrs(std::ostream& out, const Attrs& attrs, const OpDef* def,
                 const std::string& op_name) {
  const char* separator = " {";
  if (!op_name.empty()) {
    out << separator << "name=" << Attr(op_name);
    separator = ", ";
  }
  for (const auto& [name, attr] : attrs) {
    const AttrDef* known = def ? def->find_attr(name) : nullptr;
    if (known && known->fallback && *known->fallback == attr) continue;
    out << separator;
    write_name(out, name);
    out << '=' << attr;
    separator = ", ";
  }
  if (separator[0] == ',') out << '}';
}

void write_slots(std::ostream& out, const std::vector<Names>& slots,
                 const std::vector<SlotDef>& defs) {
  for (size_t s = 0; s < slots.size(); ++s) {
    if (s) out << ", ";
    if (defs[s].arity == Arity::kMany) {
      out << '[';
      for (size_t i = 0; i < slots[s].size(); ++i) {
        if (i) out << ", ";
        write_name(out, slots[s][i]);
      }
      out << ']';
    } else if (slots[s].empty()) {
      out << '_';
    } else {
      write_name(out, slots[s].front());
    }
  }
}

void write_op(std::ostream& out, const Op& op) {
  if (!op.outputs.empty()) {
    write_slots(out, op.outputs, op.def->outputs);
    out << " = ";
  }
  out << op.type() << '(';
  write_slots(out, op.inputs, op.def->inputs);
  out << ')';
  write_attrs(out, op.attrs, op.def, op.name);
  if (op.stage >= 0) out << " on " << op.stage;
  if (!op.guard.empty()) {
    out << " if ";
    write_name(out, op.guard);
  }
  if (op.loc.known()) out << " @ " << Attr(op.loc.file) << ':' << op.loc.line;
}

void write_placement(std::ostream& out, const Placement& p) {
  if (p.is_replicated()) return;
  out << ' ' << name_of(p.kind);
  if (p.is_transient()) return;
  out << '(';
  write_name(out, p.axis);
  out << ", ";
  if (p.is_per_rank())
    out << name_of(p.resize);
  else
    out << (p.is_owned() ? p.owner : p.dim);
  out << ')';
}

void write_training(std::ostream& out, const Training& training) {
  const auto line = [&](const char* what, const Names& names) {
    out << what;
    const char* separator = "(";
    for (const std::string& name : names) {
      out << separator;
      if (name.empty())
        out << '_';
      else
        write_name(out, name);
      separator = ", ";
    }
    out << ")\n";
  };
  out << "\ntraining:\n";
  line("loss", {training.loss, training.seed});
  if (!training.step.empty()) line("step", {training.step});
  if (!training.ready.empty()) line("ready", {training.ready});
  for (const Training::Parameter& p : training.parameters)
    line("parameter", {p.name, p.gradient, p.learning_rate});
}

std::string_view keyword(const VarInfo& v) {
  if (v.is_data) return "data";
  if (v.is_parameter) return "param";
  return v.persistable ? "state" : "var";
}

// A hand-written parser: one line is one variable or one op, so errors can name the line.
class Parser {
 public:
  Parser(std::string_view text, std::string_view source)
      : rest_(text), source_(source), rw_(program_) {}

  Program run() {
    while (next_line()) parse_line();
    line_number_ = 0;
    check(seen_header_, "does not start with 'program'");
    verify(program_, source_);
    return std::move(program_);
  }

 private:
  template <class... Parts>
  void check(bool ok, const Parts&... message) const {
    if (ok) return;
    fail(Error::Kind::kCorrupt,
         str(source_, line_number_ ? str(":", line_number_) : "", ": ", message...));
  }

  bool next_line() {
    if (rest_.empty()) return false;
    const size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? "" : rest_.substr(end + 1);
    ++line_number_;
    return true;
  }

  // ---- the scanner works on line_ ----
  void skip_space() {
    const size_t n = line_.find_first_not_of(" \t\r");
    line_ = n == std::string_view::npos ? "" : line_.substr(n);
    if (!line_.empty() && line_.front() == '#') line_ = "";
  }
  bool at_end() {
    skip_space();
    return line_.empty();
  }
  bool peek(char c) {
    skip_space();
    return !line_.empty() && line_.front() == c;
  }
  bool accept(char c) {
    if (!peek(c)) return false;
    line_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    const std::string_view before = line_;
    check(accept(c), "expected '", c, "' before '", before.substr(0, 20), "'");
  }
  std::string quoted() {
    expect('"');
    std::string out;
    while (!line_.empty() && line_.front() != '"') {
      char c = line_.front();
      line_.remove_prefix(1);
      if (c == '\\' && !line_.empty()) {
        c = line_.front() == 'n' ? '\n' : line_.front();
        line_.remove_prefix(1);
      }
      out += c;
    }
    check(!line_.empty(), "a quoted text has no end");
    line_.remove_prefix(1);
    return out;
  }
  std::string word(std::string_view stops) {
    skip_space();
    const size_t n = std::min(line_.find_first_of(stops), line_.size());
    std::string out(line_.substr(0, n));
    line_.remove_prefix(n);
    return out;
  }
  std::string name() {
    if (peek('"')) return quoted();
    std::string out = word(" \t\r\n,()[]{}=:#\"");
    check(!out.empty(), "expected a name before '", line_.substr(0, 20), "'");
    return out;
  }

  Attr number(const std::string& text) const {
    int64_t whole = 0;
    const char* end = text.data() + text.size();
    const auto as_int = std::from_chars(text.data(), end, whole);
    if (as_int.ec == std::errc{} && as_int.ptr == end) return whole;
    double real = 0;
    const auto as_float = std::from_chars(text.data(), end, real);
    check(as_float.ec == std::errc{} && as_float.ptr == end, "'", text, "' is not a value");
    return real;
  }
  Attr scalar() {
    if (peek('"')) return quoted();
    const std::string text = word(" \t\r\n,]}#");
    if (text == "true" || text == "false") return text == "true";
    return number(text);
  }
  Attr value() {
    if (!accept('[')) return scalar();
    std::vector<Attr> items;
    while (!accept(']')) {
      items.push_back(scalar());
      if (!peek(']')) expect(',');
    }
    return list_of(items);
  }
  Attr list_of(const std::vector<Attr>& items) const {
    bool strings = !items.empty(), ints = true;
    for (const Attr& item : items) {
      strings = strings && item.type() == AttrType::kString;
      ints = ints && item.type() == AttrType::kInt;
    }
    if (strings) {
      Strings out;
      for (const Attr& item : items) out.push_back(item.as<std::string>());
      return out;
    }
    if (ints) {
      Ints out;
      for (const Attr& item : items) out.push_back(item.as<int64_t>());
      return out;
    }
    Floats out;
    for (Attr item : items) {
      check(coerce(item, AttrType::kFloat), "a list must hold numbers or texts, not both");
      out.push_back(item.as<double>());
    }
    return out;
  }
  Attrs attrs() {
    Attrs out;
    if (!accept('{')) return out;
    while (!accept('}')) {
      const std::string key = name();
      expect('=');
      check(out.emplace(key, value()).second, "attribute '", key, "' stands twice");
      if (!peek('}')) expect(',');
    }
    return out;
  }
  Names names() {
    if (accept('[')) {
      Names out;
      while (!accept(']')) {
        out.push_back(name());
        if (!peek(']')) expect(',');
      }
      return out;
    }
    const bool is_quoted = peek('"');
    const std::string one = name();
    return one == "_" && !is_quoted ? Names{} : Names{one};
  }

  // ---- the grammar ----
  void parse_line() {
    if (at_end()) return;
    const std::string_view whole = line_;
    const std::string first = word(" \t\r\n,()[]{}=:#\"");
    skip_space();
    if (!seen_header_) {
      check(first == "program", "expected 'program', got '", first, "'");
      return parse_header();
    }
    for (const Role role : {Role::kForward, Role::kBackward, Role::kUpdate}) {
      if (first == name_of(role) && peek(':')) {
        expect(':');
        role_ = role;
        in_training_ = false;
        return finish_line();
      }
    }
    if (first == "training" && peek(':')) {
      expect(':');
      in_training_ = true;
      return finish_line();
    }
    if (in_training_) return parse_training(first);
    const bool declares =
        (first == "data" || first == "param" || first == "state" || first == "var");
    if (declares && !peek('=') && !peek(',') && !peek('(')) return parse_var(first);
    line_ = whole;
    parse_op();
  }
  void finish_line() {
    check(at_end(), "unexpected '", line_.substr(0, 20), "' at the end of the line");
  }

  void parse_header() {
    seen_header_ = true;
    for (const auto& [key, attr] : attrs()) {
      check(key == "seed" && attr.type() == AttrType::kInt, "the program has no setting '", key,
            "'; known: seed");
      program_.set_seed(static_cast<uint64_t>(attr.as<int64_t>()));
    }
    finish_line();
  }

  void parse_var(const std::string& kind) {
    VarInfo v;
    v.name = name();
    v.is_data = kind == "data";
    v.is_parameter = kind == "param";
    v.persistable = kind == "param" || kind == "state";
    expect(':');
    std::string type = word(" \t\r\n[");
    if (type == "sparse") {
      v.type.kind = VarKind::kSparseRows;
      type = word(" \t\r\n[");
    }
    const auto dtype = dtype_from_name(type);
    check(dtype.has_value(), "'", type,
          "' is not a dtype; known: f32 f64 i32 i64 f16 bf16 u8 bool");
    v.type.dtype = *dtype;
    check(peek('['), "expected the shape of '", v.name, "', such as [-1,784]");
    const Attr shape = value();
    check(shape.type() == AttrType::kInts, "the shape of '", v.name, "' must be whole numbers");
    v.type.shape = shape.as<Shape>();
    while (!at_end() && !peek('{')) parse_var_word(v);
    v.attrs = attrs();
    finish_line();
    guarded([&] { rw_.add_var(std::move(v)); });
  }

  void parse_var_word(VarInfo& v) {
    const std::string flag = name();
    if (flag == "stop_gradient") {
      v.stop_gradient = true;
    } else if (flag == "is_distributed") {
      v.is_distributed = true;
    } else {
      const auto kind = placement_kind_from_name(flag);
      check(kind.has_value(), "unknown word '", flag, "' after the type; known: stop_gradient, ",
            "is_distributed, per_rank(axis, average|sum|reset), sharded(axis, dimension), ",
            "owned(axis, rank), transient");
      v.placement.kind = *kind;
      if (!v.placement.is_replicated() && !v.placement.is_transient()) parse_axis(v.placement);
    }
  }
  void parse_axis(Placement& placement) {
    expect('(');
    placement.axis = name();
    expect(',');
    const std::string detail = name();
    if (placement.is_per_rank()) {
      const auto resize = resize_from_name(detail);
      check(resize.has_value(), "'", detail, "' is not average, sum or reset");
      placement.resize = *resize;
    } else {
      const int64_t most = placement.is_owned() ? 1 << 24 : 1000;
      const Attr read = number(detail);
      check(read.type() == AttrType::kInt && read.as<int64_t>() >= 0 && read.as<int64_t>() < most,
            "'", detail, "' is not a ", placement.is_owned() ? "rank" : "dimension");
      (placement.is_owned() ? placement.owner : placement.dim) = read.as<int>();
    }
    expect(')');
  }

  void parse_training(const std::string& what) {
    expect('(');
    Names args;
    while (!accept(')')) {
      const Names one = names();
      check(one.size() <= 1, "a list is not expected here");
      args.push_back(one.empty() ? "" : one.front());
      if (!peek(')')) expect(',');
    }
    finish_line();
    Training& training = rw_.edit_training();
    if (what == "loss" && args.size() == 2) {
      training.loss = args[0];
      training.seed = args[1];
    } else if (what == "step" && args.size() == 1) {
      training.step = args[0];
    } else if (what == "ready" && args.size() == 1) {
      training.ready = args[0];
    } else if (what == "parameter" && args.size() == 3) {
      training.parameters.push_back({args[0], args[1], args[2]});
    } else {
      check(false, "expected loss(variable, gradient), step(variable), ready(variable) or ",
            "parameter(variable, gradient, learning rate)");
    }
  }

  int index(std::string_view what) {
    const Attr number_read = number(word(" \t\r\n#"));
    check(number_read.type() == AttrType::kInt && number_read.as<int64_t>() >= 0 &&
              number_read.as<int64_t>() < 1000000000,
          what, " is expected here");
    return number_read.as<int>();
  }

  void parse_op() {
    std::vector<Names> outputs;
    // "type(...)" without outputs, or "a, b = type(...)".
    const std::string_view whole = line_;
    std::string type = peek('[') || peek('"') ? "" : word(" \t\r\n,()[]{}=:#\"");
    if (type.empty() || !peek('(')) {
      line_ = whole;
      do outputs.push_back(names());
      while (accept(','));
      expect('=');
      type = name();
    }
    expect('(');
    std::vector<Names> inputs;
    while (!accept(')')) {
      inputs.push_back(names());
      if (!peek(')')) expect(',');
    }
    Rewriter::NewOp op;
    op.type = type;
    op.role = role_;
    op.attrs = attrs();
    if (const auto it = op.attrs.find("name");
        it != op.attrs.end() && it->second.type() == AttrType::kString) {
      op.name = it->second.as<std::string>();
      op.attrs.erase(it);
    }
    skip_space();
    if (line_.starts_with("on ")) {
      line_.remove_prefix(3);
      op.stage = index("a stage");
    }
    skip_space();
    if (line_.starts_with("if ")) {
      line_.remove_prefix(3);
      op.guard = name();
    }
    if (accept('@')) {
      op.loc.file = quoted();
      expect(':');
      op.loc.line = index("a line number");
    }
    finish_line();
    guarded([&] {
      const OpDef& def = op_def(type);
      check(outputs.size() <= def.outputs.size(), type, " has ", def.outputs.size(),
            " outputs, the line names ", outputs.size());
      check(inputs.size() <= def.inputs.size(), type, " has ", def.inputs.size(),
            " inputs, the line names ", inputs.size());
      for (size_t i = 0; i < outputs.size(); ++i)
        op.outputs.emplace_back(def.outputs[i].name, outputs[i]);
      for (size_t i = 0; i < inputs.size(); ++i)
        op.inputs.emplace_back(def.inputs[i].name, inputs[i]);
      rw_.append_unchecked(op);
    });
  }

  // Errors of the model (unknown op, duplicate variable, ...) get the line of the text.
  template <class Fn>
  void guarded(const Fn& fn) const {
    try {
      fn();
    } catch (const Error& e) {
      if (e.kind() == Error::Kind::kCorrupt) throw;
      check(false, e.what());
    }
  }

  std::string_view rest_, line_;
  std::string source_;
  int line_number_ = 0;
  bool seen_header_ = false;
  bool in_training_ = false;
  Role role_ = Role::kForward;
  Program program_;
  Rewriter rw_;
};

}  // namespace

std::string to_text(const Op& op) {
  std::ostringstream out;
  write_op(out, op);
  return out.str();
}

std::string to_text(const Program& program) {
  std::ostringstream out;
  out << "program";
  // As the signed number of the same bits: numbers in the text are signed.
  if (program.seed() != 0) out << " {seed=" << static_cast<int64_t>(program.seed()) << '}';
  out << '\n';
  for (const VarInfo* v : program.vars()) {
    out << keyword(*v) << ' ';
    write_name(out, v->name);
    out << " : " << v->type;
    if (v->stop_gradient) out << " stop_gradient";
    if (v->is_distributed) out << " is_distributed";
    write_placement(out, v->placement);
    write_attrs(out, v->attrs, nullptr, "");
    out << '\n';
  }
  const Op* before = nullptr;
  for (const Op& op : program.ops()) {
    if (before == nullptr || before->role != op.role) out << '\n' << name_of(op.role) << ":\n";
    write_op(out, op);
    out << '\n';
    before = &op;
  }
  if (!program.training().empty()) write_training(out, program.training());
  return out.str();
}

Program parse_text(std::string_view text, std::string_view source) {
  return Parser(text, source).run();
}

}  // namespace fleetx::ir
